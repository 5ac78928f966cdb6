package realapi

import (
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/podresize"
)

// TestVerticalPodAutoscaler: the autoscaler's own programs give pods what the fleet's report says.
func TestVerticalPodAutoscaler(t *testing.T) {
	v := aScaler(t)
	v.deploys("cart", "1", "2")
	v.deploys("web", "1", "2")
	v.deploys("stock", "1", "2")
	const ours = "recommenders: [{name: unthrottle}]"
	v.scales("cart", ours)
	v.scales("web", ours+", updatePolicy: {updateMode: InPlaceOrRecreate}")
	v.scales("stock", `updatePolicy: {updateMode: "Off"}`)
	cart, web := v.uids("cart"), v.uids("web")
	v.rounds(v.looks, 3)
	if !slices.Equal(v.uids("cart"), cart) || !slices.Equal(v.uids("web"), web) {
		t.Fatal("without a recommendation pods are replaced")
	}
	v.writes(aReport(t, time.Hour, "cart/app 0.8 0.9 1.1", "web/app 2.2 2.4 3"), 2, 2)
	versions := v.versions()

	t.Run("a pod is replaced", func(t *testing.T) {
		v.until("cart's pods are new and have what is recommended", func() bool { return v.has("cart", "550m", "1100m") })
		for _, p := range v.pods("cart") {
			if slices.Contains(cart, string(p.UID)) || cpuOf(&p, "proxy") != "100m 100m" || p.Annotations["vpaUpdates"] == "" {
				t.Errorf("%s: %s, %v", p.Name, cpuOf(&p, "proxy"), p.Annotations)
			}
		}
	})
	t.Run("a pod is resized in place", func(t *testing.T) {
		v.until("web's pods have what is recommended", func() bool { return v.has("web", "1500m", "3") })
		if !slices.Equal(v.uids("web"), web) {
			t.Error("they are other pods")
		}
	})
	t.Run("their recommender leaves our objects alone", func(t *testing.T) {
		v.rounds(v.recommends, 3)
		now := v.versions()
		for _, name := range []string{"cart", "web"} {
			if now[name] != versions[name] {
				t.Errorf("%s is written: %v", name, v.autoscaler(name).Object["status"])
			}
		}
		if got := said(v.autoscaler("stock")); got == "" {
			t.Error("it does not write its own object")
		}
	})
	t.Run("then all is as it should be", func(t *testing.T) {
		cart, web := v.uids("cart"), v.uids("web")
		v.rounds(v.looks, 5)
		if !slices.Equal(v.uids("cart"), cart) || !slices.Equal(v.uids("web"), web) || !v.has("cart", "550m", "1100m") ||
			!v.has("web", "1500m", "3") || !v.has("stock", "1", "2") {
			t.Error("pods are replaced or resized again")
		}
	})

	resizes := v.resizes()
	t.Run("the agent is told to leave its pods alone", func(t *testing.T) {
		for app, want := range map[string]string{"stock": "",
			"cart": "it is resized by VerticalPodAutoscaler cart (updateMode Recreate)",
			"web":  "it is resized by VerticalPodAutoscaler web (updateMode InPlaceOrRecreate)"} {
			if got, err := resizes.Read(t.Context(), podresize.Name("shop-a", v.pods(app)[0].Name, "app")); err != nil || got.Controlled != want {
				t.Errorf("%s: %+v, %v", app, got, err)
			}
		}
	})
	t.Run("experiment", func(t *testing.T) {
		show := func(what string) {
			for _, app := range []string{"cart","web","sure","burst"} {
				for _, p := range v.pods(app) { t.Logf("%s: %s %s %s", what, p.Name, p.Status.QOSClass, cpuOf(&p, "app")) }
			}
		}
		v.deploys("sure", "1", "1")
		v.deploys("burst", "500m", "1")
		w := func(app string, from, to podresize.Milli) {
			name := v.pods(app)[0].Name
			t.Log(app, name, from, to, resizes.Write(t.Context(), podresize.Name("shop-a", name, "app"), from, to))
		}
		w("sure", 1000, 2000)
		w("burst", 1000, 2000)
		v.rounds(v.looks, 3)
		show("raised before")
		v.scales("sure", ours)
		v.scales("burst", ours+", updatePolicy: {updateMode: InPlaceOrRecreate}")
		v.writes(aReport(t, time.Hour, "cart/app 0.8 0.9 1.1", "web/app 2.2 2.4 3", "sure/app 0.9 1 1.1", "burst/app 1.1 1.2 1.3"), 4, 2)
		v.rounds(v.looks, 10)
		show("given to VPA")
		w("sure", 1100, 3000)
		w("burst", 2600, 3000)
		w("web", 3000, 6000)
		w("cart", 1100, 2200)
		v.rounds(v.looks, 10)
		show("raised again")
		v.writes(aReport(t, time.Hour, "cart/app 0.8 0.9 1.3", "web/app 3.2 3.4 4", "sure/app 0.9 1 1.1", "burst/app 1.1 1.2 1.3"), 4, 2)
		v.rounds(v.looks, 10)
		show("another report")
	})
}

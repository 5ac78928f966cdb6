package realapi

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
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
			"cart": "VerticalPodAutoscaler cart (updateMode Recreate)",
			"web":  "VerticalPodAutoscaler web (updateMode InPlaceOrRecreate)"} {
			if got, err := resizes.Read(t.Context(), podresize.Name("shop-a", v.pods(app)[0].Name, "app")); err != nil || got.Autoscaler != want || got.Untold != "" {
				t.Errorf("%s: %+v, %v", app, got, err)
			}
		}
	})
	t.Run("a raised pod that is given to the autoscaler", func(t *testing.T) {
		v.deploys("sure", "1", "1")
		v.deploys("burst", "500m", "1")
		raised := map[string]*apply.Env{}
		for _, app := range []string{"sure", "burst"} {
			raised[app] = v.raises(resizes, v.pods(app)[0].Name, "1", "2")
		}
		before := v.uids("sure")
		v.scales("sure", ours)
		v.scales("burst", ours+", updatePolicy: {updateMode: InPlaceOrRecreate}")
		v.writes(aReport(t, time.Hour, "cart/app 0.8 0.9 1.1", "web/app 2.2 2.4 3", "sure/app 1.4 1.5 1.6", "burst/app 1.2 1.3 1.4"), 4, 2)
		v.until("Guaranteed pods are replaced, and of the others one keeps the raised ratio", func() bool {
			return v.has("sure", "1600m", "1600m") && v.each("burst", "700m 1400m", "700m 2800m")
		})
		for _, uid := range v.uids("sure") {
			if slices.Contains(before, uid) {
				t.Error("a pod of sure is not replaced")
			}
		}
		for app, env := range raised {
			if _, err := apply.Restore(t.Context(), *env, apply.Selector{}); err != nil {
				t.Errorf("%s: %v", app, err)
			}
		}
		v.rounds(v.looks, 5)
		if !v.has("sure", "1600m", "1600m") || !v.each("burst", "700m 1400m", "700m 2800m") {
			t.Error("what the autoscaler wrote is written again")
		}
	})
}

// raises raises a container's limit in its pod's spec, as the agent did before an autoscaler had the pod.
func (v *scaler) raises(pods podresize.FS, pod, from, to string) *apply.Env {
	v.t.Helper()
	env := &apply.Env{FS: cgroupmodel.New(cgroupmodel.V2("0-3")), StateDir: v.t.TempDir(), BootID: "this", By: "test",
		Pods: &resizedBy{pods, v}}
	if err := env.FS.Make(cgroup.CPU, "/pod"); err != nil {
		v.t.Fatal(err)
	}
	if _, err := apply.Apply(v.t.Context(), *env, txn.Purpose{Target: txn.Target{Path: "/pod/app"}, Remedy: "raise"},
		[]change.Change{{Kind: change.KindPodCPU, Op: change.OpSet, Path: "/pod", Unit: podresize.Name("shop-a", pod, "app"),
			File: podresize.Setting, From: from, To: to}}); err != nil {
		v.t.Fatal(err)
	}
	return env
}

// resizedBy is the container resize, with the test's kubelet.
type resizedBy struct {
	podresize.FS
	v *scaler
}

func (r *resizedBy) Wait(_ context.Context, n int) bool {
	r.v.kubelet()
	return n < 5
}

package recommender

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unthrottle/unthrottle/kubernetes/autoscalers"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

const report = `{"schema":"fleet_report","version":1,"until":"2026-11-25T11:00:00Z","services":[
 {"workload":{"kind":"Deployment","namespace":"shop","name":"cart","container":"app"},"limit_cpus":0.9,"limit_cpus_low":0.8,"limit_cpus_high":1.1,"unknown":0},
 {"workload":{"kind":"Deployment","namespace":"shop","name":"cart","container":"proxy"},"limit_cpus":null,"limit_cpus_low":null,"limit_cpus_high":null,"unknown":1},
 {"workload":null,"limit_cpus":1,"limit_cpus_low":1,"limit_cpus_high":1,"unknown":0}]}`

func read(t *testing.T) *Report {
	t.Helper()
	r, err := ReadReport(strings.NewReader(report))
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestReadReport(t *testing.T) {
	for _, bad := range []string{"", "{", `{"schema":"fix","version":1}`, `{"schema":"fleet_report","version":2}`, `[]`} {
		if _, err := ReadReport(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is a report", bad)
		}
	}
}

// The request that makes the right limit, by the proportion of the template, within what the object allows.
func TestFor(t *testing.T) {
	cart := Target{"Deployment", "shop", "cart"}
	for name, c := range map[string]struct {
		of     Target
		c      Container
		p      autoscalers.Policy
		target string // "": none
		lower  string
		why    string
	}{
		"half of the limit":       {cart, Container{"app", new(1.0), new(2.0)}, autoscalers.Policy{}, "550m", "400m", ""},
		"no request is the limit": {cart, Container{"app", nil, new(2.0)}, autoscalers.Policy{}, "1100m", "800m", ""},
		"within bounds": {cart, Container{"app", new(1.0), new(2.0)},
			autoscalers.Policy{Least: new(0.45), Most: new(0.5)}, "500m", "450m", ""},
		"off": {cart, Container{"app", new(1.0), new(2.0)}, autoscalers.Policy{Off: true}, "", "", "its policy is Off"},
		"requests only": {cart, Container{"app", new(1.0), new(2.0)}, autoscalers.Policy{RequestsOnly: true}, "", "",
			"controls requests only"},
		"no limit":  {cart, Container{"app", new(1.0), nil}, autoscalers.Policy{}, "", "", "has no limit"},
		"not sized": {cart, Container{"proxy", nil, new(2.0)}, autoscalers.Policy{}, "", "", "what it needs is not known"},
		"another namespace": {Target{"Deployment", "stock", "cart"}, Container{"app", nil, new(2.0)}, autoscalers.Policy{},
			"", "", "the report does not have it"},
		"requests nothing": {cart, Container{"app", new(0.0), new(2.0)}, autoscalers.Policy{}, "", "", "requests no CPU"},
	} {
		recommendations, left := For(read(t), c.of, []Container{c.c}, func(string) autoscalers.Policy { return c.p })
		switch {
		case c.target == "" && (len(recommendations) != 0 || len(left) != 1 || !strings.Contains(left[0].String(), c.why)):
			t.Errorf("%s: %+v, %q", name, recommendations, left)
		case c.target != "" && (len(recommendations) != 1 || len(left) != 0 || recommendations[0].Target["cpu"] != c.target ||
			recommendations[0].Upper["cpu"] != c.target || recommendations[0].Lower["cpu"] != c.lower):
			t.Errorf("%s: %+v, %q", name, recommendations, left)
		}
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

const autoscaler = `{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"namespace":"shop","name":"NAME"},
 "spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"TARGET"},"recommenders":[{"name":"RECOMMENDER"}],
  "resourcePolicy":{"containerPolicies":[{"containerName":"*","maxAllowed":{"cpu":"450m"}},{"containerName":"app","minAllowed":{"cpu":"100m"}}]}}}`

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"cart"},"spec":{"template":{"spec":{"containers":[
 {"name":"app","resources":{"requests":{"cpu":1},"limits":{"cpu":"2"}}},{"name":"proxy","resources":{"limits":{"cpu":"500m"}}}]}}}}`

func cluster(t *testing.T) *fake.FakeDynamicClient {
	t.Helper()
	recommenderOf := func(name, target, recommender string) *unstructured.Unstructured {
		return object(t, strings.NewReplacer("NAME", name, "TARGET", target, "RECOMMENDER", recommender).Replace(autoscaler))
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{autoscalers.Resource: "VerticalPodAutoscalerList"},
		recommenderOf("cart", "cart", Name), recommenderOf("other", "cart", "default"),
		recommenderOf("lost", "nothing", Name), object(t, deployment))
}

func status(t *testing.T, c *fake.FakeDynamicClient, name string) map[string]any {
	t.Helper()
	u, err := c.Resource(autoscalers.Resource).Namespace("shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of, _, _ := unstructured.NestedMap(u.Object, "status")
	return of
}

// Objects that name this recommender get what the report knows, once; others are left alone.
func TestUpdate(t *testing.T) {
	c := cluster(t)
	done, err := Update(t.Context(), c, read(t), noon)
	if err != nil || done.Objects != 2 || done.Written != 2 || done.Known != 0 || len(done.Failed) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	is := status(t, c, "cart")
	all, _, _ := unstructured.NestedSlice(is, "recommendation", "containerRecommendations")
	if len(all) != 1 {
		t.Fatalf("%+v", is)
	}
	one := all[0].(map[string]any)
	if target, _, _ := unstructured.NestedString(one, "target", "cpu"); one["containerName"] != "app" || target != "550m" {
		t.Errorf("%+v", one)
	}
	conditions, _, _ := unstructured.NestedSlice(is, "conditions")
	if of := conditions[0].(map[string]any); len(conditions) != 1 || of["status"] != "True" || of["type"] != provided ||
		of["message"] != "proxy: what it needs is not known" || of["lastTransitionTime"] != "2026-11-25T12:00:00Z" {
		t.Errorf("%+v", conditions)
	}
	if status(t, c, "other") != nil {
		t.Error("another recommender's object has changed")
	}
	lost, _, _ := unstructured.NestedSlice(status(t, c, "lost"), "conditions")
	if of := lost[0].(map[string]any); of["status"] != "False" || !strings.Contains(of["message"].(string), "there is no Deployment") {
		t.Errorf("%+v", lost)
	}
	// The same again is written no more, and what becomes unknown stays.
	if done, err = Update(t.Context(), c, read(t), noon.Add(time.Hour)); err != nil || done.Written != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
	// A container that came a moment ago silences nothing.
	young := read(t)
	young.Services[0].Unknown, young.Services[0].Young = 1, 1
	if done, err = Update(t.Context(), c, young, noon.Add(time.Hour)); err != nil || done.Written != 0 {
		t.Errorf("young: %+v, %v", done, err)
	}
	unknown := read(t)
	unknown.Services[0].Unknown, unknown.Services[0].Young = 2, 1
	if done, err = Update(t.Context(), c, unknown, noon.Add(2*time.Hour)); err != nil || done.Written != 1 {
		t.Errorf("unknown: %+v, %v", done, err)
	}
	if all, _, _ := unstructured.NestedSlice(status(t, c, "cart"), "recommendation", "containerRecommendations"); len(all) != 1 {
		t.Errorf("it is gone: %+v", status(t, c, "cart"))
	}
}

// An object whose workload is gone keeps its recommendation; a container that the template no longer has loses it. Both are written once.
func TestUpdateKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *fake.FakeDynamicClient)
		kept   []string
		why    string
	}{
		"the workload is gone": {func(t *testing.T, c *fake.FakeDynamicClient) {
			if err := c.Resource(deployments).Namespace("shop").Delete(t.Context(), "cart", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, []string{"app"}, `there is no Deployment "cart"`},
		"its container has another name": {func(t *testing.T, c *fake.FakeDynamicClient) {
			u := object(t, strings.Replace(deployment, `"name":"app"`, `"name":"web"`, 1))
			if _, err := c.Resource(deployments).Namespace("shop").Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, nil, "web: the report does not have it; proxy: what it needs is not known"},
	} {
		cl := cluster(t)
		if done, err := Update(t.Context(), cl, read(t), noon); err != nil || done.Written != 2 {
			t.Fatalf("%s: %+v, %v", name, done, err)
		}
		c.change(t, cl)
		for _, want := range []int{1, 0} {
			if done, err := Update(t.Context(), cl, read(t), noon); err != nil || done.Written != want {
				t.Errorf("%s: %+v, %v, want %d written", name, done, err, want)
			}
			var kept []string
			is := status(t, cl, "cart")
			all, _, _ := unstructured.NestedSlice(is, "recommendation", "containerRecommendations")
			for _, one := range all {
				kept = append(kept, one.(map[string]any)["containerName"].(string))
			}
			conditions, _, _ := unstructured.NestedSlice(is, "conditions")
			if of := conditions[0].(map[string]any); !slices.Equal(kept, c.kept) || of["status"] != "False" || of["message"] != c.why {
				t.Errorf("%s: %+v", name, is)
			}
		}
	}
}

// A kind of another group is no workload of ours, whatever its name is.
func TestUpdateOtherGroups(t *testing.T) {
	c := cluster(t)
	u, err := c.Resource(autoscalers.Resource).Namespace("shop").Get(t.Context(), "cart", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(u.Object, "apps.kruise.io/v1beta1", "spec", "targetRef", "apiVersion"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resource(autoscalers.Resource).Namespace("shop").Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Update(t.Context(), c, read(t), noon); err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(status(t, c, "cart"), "conditions")
	if of := conditions[0].(map[string]any); of["status"] != "False" ||
		!strings.Contains(of["message"].(string), `a "Deployment" of "apps.kruise.io/v1beta1"`) {
		t.Errorf("%+v", conditions)
	}
}

// What is read of a report is in its schema.
func TestReportIsTheSchemas(t *testing.T) {
	type schema struct {
		Properties map[string]schema
		Items      *schema
	}
	file, err := os.ReadFile("../../cmd/unthrottle/testdata/schema/fleet_report.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var whole schema
	if err := json.Unmarshal(file, &whole); err != nil {
		t.Fatal(err)
	}
	var look func(at string, of reflect.Type, is schema)
	look = func(at string, of reflect.Type, is schema) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				if is.Items == nil {
					t.Errorf("%s is no array", at)
					return
				}
				is = *is.Items
			}
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() {
			return
		}
		for field := range of.Fields() {
			key := field.Tag.Get("json")
			next, ok := is.Properties[key]
			if !ok {
				t.Errorf("%s has no %s", at, key)
				continue
			}
			look(at+"."+key, field.Type, next)
		}
	}
	look("the report", reflect.TypeFor[Report](), whole)
}

// What one object's API call says does not end the others; older definitions have no status of their own.
// Pages are read before anything is written, as that may take longer than a page's token lasts. One that expired all the same
// begins the list again.
func TestUpdateOfManyPages(t *testing.T) {
	for name, c := range map[string]struct {
		expired int // tokens
		fails   bool
	}{"all valid": {0, false}, "one expired": {1, false}, "all expired": {100, true}} {
		api := cluster(t)
		all, err := api.Resource(autoscalers.Resource).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(all.Items) != 3 {
			t.Fatal(err)
		}
		expired, written, more := 0, false, false
		api.PrependReactor("patch", "verticalpodautoscalers", func(clienttesting.Action) (bool, runtime.Object, error) {
			written = true
			return false, nil, nil
		})
		api.PrependReactor("list", "verticalpodautoscalers", func(clienttesting.Action) (bool, runtime.Object, error) {
			page := all.DeepCopy()
			switch more = !more; { // the fake tells no tokens
			case more:
				page.Items = page.Items[:1]
				page.SetContinue("next")
			case written || expired < c.expired:
				expired++
				return true, nil, apierrors.NewResourceExpired("the provided continue parameter is too old")
			default:
				page.Items = page.Items[1:]
			}
			return true, page, nil
		})
		done, err := Update(t.Context(), api, read(t), noon)
		if (err != nil) != c.fails || !c.fails && (done.Objects != 2 || done.Written != 2) || c.fails && written {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
	}
}

func TestUpdateFails(t *testing.T) {
	c := cluster(t)
	c.PrependReactor("patch", "verticalpodautoscalers", func(a clienttesting.Action) (bool, runtime.Object, error) {
		action := a.(clienttesting.PatchAction)
		switch {
		case action.GetName() == "lost":
			return true, nil, errors.New("it says\x1b no")
		case action.GetSubresource() == "status":
			return true, nil, apierrors.NewNotFound(autoscalers.Resource.GroupResource(), action.GetName())
		}
		return false, nil, nil
	})
	done, err := Update(t.Context(), c, read(t), noon)
	if err != nil || done.Written != 1 || !slices.Equal(done.Failed, []string{`shop/lost: it says\x1b no`}) {
		t.Errorf("%+v, %v", done, err)
	}
	if status(t, c, "cart") == nil {
		t.Error("nothing was written")
	}
	// What refuses has a way out, which is another right where the definition has no status of its own.
	c.PrependReactor("patch", "verticalpodautoscalers", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() == "status" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(autoscalers.Resource.GroupResource(), "cart", errors.New("no"))
	})
	c.PrependReactor("patch", "verticalpodautoscalers", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetSubresource() == "status", nil, apierrors.NewNotFound(autoscalers.Resource.GroupResource(), "cart")
	})
	done, err = Update(t.Context(), c, &Report{}, noon)
	if err != nil || len(done.Failed) != 2 || !strings.HasPrefix(done.Failed[0], "shop/cart: it is gone, or its "+
		"definition has no subresource status: ") ||
		!strings.HasSuffix(done.Failed[0], "; let the role patch verticalpodautoscalers, too") {
		t.Errorf("%+v, %v", done, err)
	}
	for name, no := range map[string]error{
		"the role of examples/kubernetes/recommender.yaml": apierrors.NewForbidden(autoscalers.Resource.GroupResource(), "", errors.New("no")),
		"give another in --kubeconfig":                     apierrors.NewUnauthorized("no"),
	} {
		c := cluster(t)
		c.PrependReactor("list", "verticalpodautoscalers", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, no
		})
		if _, err := Update(t.Context(), c, read(t), noon); err == nil || !strings.Contains(err.Error(), name) || !errors.Is(err, no) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, ctx.Err() })
	if _, err := Update(ctx, c, read(t), noon); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

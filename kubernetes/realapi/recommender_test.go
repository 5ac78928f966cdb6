package realapi

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authz "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unthrottle/unthrottle/test/wait"
)

// The module that has the autoscaler's definitions, and its checksum in go.sum's form.
const (
	autoscalerModule = "k8s.io/autoscaler/vertical-pod-autoscaler@v1.8.1"
	autoscalerSum    = "h1:Pe8bV1wozN4gOKO1rleiIY5alIyAXN+DnXDbXQcL4fI="
)

const recommenderName = "unthrottle-recommender"

var (
	autoscalers = schema.GroupVersionResource{Group: "autoscaling.k8s.io", Version: "v1", Resource: "verticalpodautoscalers"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// definitions are the autoscaler's own, from its module in Go's cache; the go command fetches it once.
func definitions(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", autoscalerModule)
	cmd.Dir = t.TempDir() // of no module
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", autoscalerModule, err, out)
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	if module.Sum != autoscalerSum {
		t.Fatalf("%s has the checksum %s, want %s", autoscalerModule, module.Sum, autoscalerSum)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "deploy", "vpa-v1-crd-gen.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return docs(t, text)
}

// recommender is the program with the example's arguments, and what it needs.
type recommender struct {
	*server
	args []string
	role *rbac.ClusterRole
	// ofCart are cartAutoscalers.
	ofCart []*unstructured.Unstructured
}

// recommender makes the objects of the example.
func (s *server) recommender() *recommender {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "kubernetes", "recommender.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	r := &recommender{server: s}
	for _, u := range docs(s.t, text) {
		if err := s.create(u); err != nil {
			s.t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
		if u.GetKind() != "CronJob" {
			continue
		}
		all, _, err := unstructured.NestedSlice(u.Object, "spec", "jobTemplate", "spec", "template", "spec", "containers")
		if err != nil || len(all) != 1 {
			s.t.Fatalf("%v, %v", all, err)
		}
		if r.args, _, err = unstructured.NestedStringSlice(all[0].(map[string]any), "args"); err != nil {
			s.t.Fatal(err)
		}
	}
	if r.role, err = s.client.RbacV1().ClusterRoles().Get(s.t.Context(), recommenderName, metav1.GetOptions{}); err != nil {
		s.t.Fatal(err)
	}
	r.may(r.role.Rules, true, authz.ResourceAttributes{Verb: "list", Group: autoscalers.Group, Resource: autoscalers.Resource})
	return r
}

// run runs it once on a report, with the example's service account.
func (r *recommender) run(report string) (printed string, err error) {
	r.t.Helper()
	return r.runAs(r.token("unthrottle", recommenderName), report)
}

func (r *recommender) runAs(token, report string) (printed string, err error) {
	r.t.Helper()
	file := r.File("report.json")
	if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
		r.t.Fatal(err)
	}
	args := append(slices.Clone(r.args), "--report", file, "--kubeconfig", r.kubeconfig(token))
	out, err := exec.CommandContext(r.t.Context(), r.program(), args...).CombinedOutput()
	return string(out), err
}

// writes runs it on a report, and expects how many objects it finds and how many of them it writes.
func (r *recommender) writes(report string, objects, written int) {
	r.t.Helper()
	out, err := r.run(report)
	if want := fmt.Sprintf("msg=recommended autoscalers=%d written=%d ", objects, written); err != nil || !strings.Contains(out, want) {
		r.t.Errorf("%v, want %q:\n%s", err, want, out)
	}
}

// fails runs it on a report, and expects that it fails and says all of this.
func (r *recommender) fails(report string, says ...string) {
	r.t.Helper()
	out, err := r.run(report)
	out = strings.ReplaceAll(out, `\"`, `"`) // the log quotes what it is told
	if err == nil || slices.ContainsFunc(says, func(s string) bool { return !strings.Contains(out, s) }) {
		r.t.Errorf("%v, want %q:\n%s", err, says, out)
	}
}

// autoscaler is an object as it is.
func (r *recommender) autoscaler(name string) *unstructured.Unstructured {
	r.t.Helper()
	u, err := r.objects.Resource(autoscalers).Namespace("shop-a").Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

// versions are the objects' resource versions by name.
func (r *recommender) versions() map[string]string {
	r.t.Helper()
	list, err := r.objects.Resource(autoscalers).Namespace("shop-a").List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	all := map[string]string{}
	for i := range list.Items {
		all[list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
	}
	return all
}

// unchanged expects that no object was written since.
func (r *recommender) unchanged(what string, since map[string]string) {
	r.t.Helper()
	if now := r.versions(); fmt.Sprint(now) != fmt.Sprint(since) {
		r.t.Errorf("%s: objects are written: %v, before %v", what, now, since)
	}
}

// may gives the role these rules, and waits until the API server knows: until the account may do this, or may not.
func (r *recommender) may(rules []rbac.PolicyRule, allowed bool, attributes authz.ResourceAttributes) {
	r.t.Helper()
	next := r.role.DeepCopy()
	next.Rules, next.ResourceVersion = rules, ""
	if _, err := r.client.RbacV1().ClusterRoles().Update(r.t.Context(), next, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	said := ""
	wait.Until(r.t, fmt.Sprintf("%s of %s is allowed: %v", attributes.Verb, attributes.Resource, allowed), func() bool {
		got, err := r.client.AuthorizationV1().SubjectAccessReviews().Create(r.t.Context(),
			&authz.SubjectAccessReview{Spec: authz.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:unthrottle:" + recommenderName,
				Groups: []string{"system:serviceaccounts", "system:authenticated"}, ResourceAttributes: &attributes}},
			metav1.CreateOptions{})
		said = fmt.Sprint(got, err)
		return err == nil && got.Status.Allowed == allowed
	}, func() string { return said })
}

// without are the rules but those about a resource.
func without(rules []rbac.PolicyRule, resource string) []rbac.PolicyRule {
	return slices.DeleteFunc(slices.Clone(rules), func(r rbac.PolicyRule) bool { return slices.Contains(r.Resources, resource) })
}

// cpus are the target, lower and upper bounds of the recommendation for a container, and the target without bounds; "": there is none.
func cpus(u *unstructured.Unstructured, container string) string {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "recommendation", "containerRecommendations")
	for _, one := range all {
		if of := one.(map[string]any); of["containerName"] == container {
			var values []string
			for _, key := range []string{"target", "lowerBound", "upperBound", "uncappedTarget"} {
				value, _, _ := unstructured.NestedString(of, key, "cpu")
				values = append(values, value)
			}
			return strings.Join(values, " ")
		}
	}
	return ""
}

// aReport is one of the services of shop-a, each given as WORKLOAD/CONTAINER LOW LIMIT HIGH; its last row is this old.
func aReport(t *testing.T, age time.Duration, services ...string) string {
	t.Helper()
	all := []map[string]any{{"name": "a host's own", "workload": nil, "limit_cpus": 1.0, "limit_cpus_low": 1.0,
		"limit_cpus_high": 1.0, "unknown": 0}}
	for _, text := range services {
		var of string
		var low, limit, high float64
		if _, err := fmt.Sscan(text, &of, &low, &limit, &high); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		workload, container, _ := strings.Cut(of, "/")
		all = append(all, map[string]any{"name": "shop-a/" + of, "limit_cpus": limit, "limit_cpus_low": low,
			"limit_cpus_high": high, "unknown": 0,
			"workload": map[string]any{"kind": "Deployment", "namespace": "shop-a", "name": workload,
				"container": container, "limit_cpus": 2.0, "request_cpus": 1.0}})
	}
	text, err := json.Marshal(map[string]any{"schema": "fleet_report", "version": 1,
		"until": time.Now().Add(-age).UTC().Truncate(time.Second), "services": all})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cartDeployment has a container with a request and a limit, and one with a limit.
const cartDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop-a, name: cart}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec:
      containers:
      - {name: app, image: cart, resources: {requests: {cpu: 1, memory: 64Mi}, limits: {cpu: "2"}}}
      - {name: proxy, image: proxy, resources: {limits: {cpu: 500m}}}
`

// cartAutoscalers are four of the same workload: two of this recommender, one of another, and one of the autoscaler's own.
const cartAutoscalers = `
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {namespace: shop-a, name: cart}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}
  recommenders: [{name: unthrottle}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {namespace: shop-a, name: bounded}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}
  recommenders: [{name: unthrottle}]
  resourcePolicy:
    containerPolicies:
    - {containerName: proxy, mode: "Off"}
    - {containerName: app, minAllowed: {cpu: 450m}, maxAllowed: {cpu: "0.5", memory: 1Gi}}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {namespace: shop-a, name: other}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}
  recommenders: [{name: performance}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {namespace: shop-a, name: default}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}
`

// earlierStatus is what the autoscaler's own recommender writes.
const earlierStatus = `{"status":{
 "conditions":[{"type":"LowConfidence","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"RecommendationProvided","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}],
 "recommendation":{"containerRecommendations":[
  {"containerName":"app","target":{"cpu":"25m","memory":"262144k"},"lowerBound":{"cpu":"25m","memory":"262144k"},"upperBound":{"cpu":"1","memory":"1G"},"uncappedTarget":{"cpu":"11m","memory":"262144k"}},
  {"containerName":"proxy","target":{"cpu":"26m","memory":"262144k"},"lowerBound":{"cpu":"24m","memory":"262144k"},"upperBound":{"cpu":"27m","memory":"1G"},"uncappedTarget":{"cpu":"26m","memory":"262144k"}}]}}}`

// theProxys is earlierStatus of the proxy, in the form of cpus.
const theProxys = "26m 24m 27m 26m"

// status lets an administrator patch an object's status.
func (r *recommender) status(name, patch string) error {
	_, err := r.objects.Resource(autoscalers).Namespace("shop-a").Patch(r.t.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status")
	return err
}

// cartKnown is a service as the report has it.
const cartKnown = "cart/app 0.8 0.9 1.1"

// known is a report of an hour ago.
func known(t *testing.T, services ...string) string {
	t.Helper()
	return aReport(t, time.Hour, services...)
}

// TestRecommender: the program with the example's rights, on the autoscaler's own definitions.
func TestRecommender(t *testing.T) {
	s := newServer(t)
	r := s.recommender()
	t.Run("a cluster without autoscalers", r.withoutAutoscalers)

	s.makes("the autoscaler's definitions", definitions(t))
	s.makes("a workload", docs(t, []byte(cartDeployment)))
	r.ofCart = docs(t, []byte(cartAutoscalers))
	var err error
	wait.Until(t, "autoscalers are served", func() bool { _, err = s.of(r.ofCart[0]); return err == nil },
		func() string { return fmt.Sprint(err) })
	s.makes("its autoscalers", r.ofCart)
	for _, name := range []string{"cart", "other"} {
		if err := r.status(name, earlierStatus); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("what the report knows", r.reportKnows)
	t.Run("the same again", r.sameAgain)
	t.Run("what becomes unknown", r.becomesUnknown)
	t.Run("an old report", r.oldReport)
	t.Run("rights that are missing", r.rightsMissing)
	t.Run("a restart of the API server", r.serverRestarts)
	t.Run("a container with another name", r.containerRenamed)
	t.Run("the workload is deleted", r.workloadDeleted)
	t.Run("more than a page", r.moreThanAPage)
	t.Run("a definition without the subresource status", r.withoutStatus)
}

func (r *recommender) withoutAutoscalers(t *testing.T) {
	r.fails(known(t, cartKnown), "the cluster has no VerticalPodAutoscaler of autoscaling.k8s.io/v1",
		"install the Vertical Pod Autoscaler first")
}

func (r *recommender) reportKnows(t *testing.T) {
	was := r.versions()
	r.writes(known(t, cartKnown), 2, 2)
	now := r.versions()
	for _, name := range []string{"other", "default"} {
		if was[name] != now[name] {
			t.Errorf("another recommender's object %s is written: %v", name, r.autoscaler(name).Object["status"])
		}
	}
	cart := r.autoscaler("cart")
	if got, want := cpus(cart, "app"), "550m 400m 550m 550m"; got != want {
		t.Errorf("cart's app gets %s, want %s", got, want)
	}
	if got := cpus(cart, "proxy"); got != theProxys {
		t.Errorf("what the report does not know does not keep its recommendation: %s", got)
	}
	if got := said(cart); !strings.HasPrefix(got, "LowConfidence=True ") ||
		!strings.Contains(got, "RecommendationProvided=True FleetReport: proxy: the report does not have it\n") {
		t.Errorf("cart's conditions are %s", got)
	}
	bounded := r.autoscaler("bounded")
	if got, want := cpus(bounded, "app"), "500m 450m 500m 550m"; got != want {
		t.Errorf("within its bounds app gets %s, want %s", got, want)
	}
	if got := said(bounded) + cpus(bounded, "proxy"); got != "RecommendationProvided=True FleetReport: proxy: its policy is Off\n" {
		t.Errorf("bounded is %s", got)
	}
}

func (r *recommender) sameAgain(t *testing.T) {
	was := r.versions()
	r.writes(known(t, cartKnown), 2, 0)
	r.unchanged("the same report", was)
}

func (r *recommender) becomesUnknown(t *testing.T) {
	r.writes(known(t, "cart/proxy 0.1 0.2 0.3"), 2, 2)
	cart := r.autoscaler("cart")
	if got, want := cpus(cart, "app")+", "+cpus(cart, "proxy"), "550m 400m 550m 550m, 300m 100m 300m 300m"; got != want {
		t.Errorf("cart is %s, want %s", got, want)
	}
	if got := said(cart); !strings.Contains(got, "RecommendationProvided=True FleetReport: app: the report does not have it\n") {
		t.Errorf("cart's conditions are %s", got)
	}
	if got := said(r.autoscaler("bounded")); !strings.Contains(got,
		"RecommendationProvided=False NotKnown: app: the report does not have it; proxy: its policy is Off\n") {
		t.Errorf("bounded's conditions are %s", got)
	}
	was := r.versions()
	r.writes(known(t, "cart/proxy 0.1 0.2 0.3"), 2, 0)
	r.unchanged("the same report", was)
	r.writes(known(t, cartKnown), 2, 2)
}

func (r *recommender) oldReport(t *testing.T) {
	was := r.versions()
	r.fails(aReport(t, 49*time.Hour, "cart/app 1.8 1.9 2"), r.File("report.json")+": its last row is of ",
		"older than 48h0m0s", "make a new report, or give another --oldest")
	r.unchanged("an old report", was)
}

func (r *recommender) rightsMissing(t *testing.T) {
	was := r.versions()
	const next, wayOut = "cart/app 0.6 0.7 0.8", "give the service account the role of examples/kubernetes/recommender.yaml"
	for resource, c := range map[string]struct {
		of   authz.ResourceAttributes
		says []string
	}{
		"verticalpodautoscalers": {authz.ResourceAttributes{Verb: "list", Group: "autoscaling.k8s.io",
			Resource: "verticalpodautoscalers"},
			[]string{"the VerticalPodAutoscalers cannot be listed: ", `cannot list resource "verticalpodautoscalers"`}},
		"verticalpodautoscalers/status": {
			authz.ResourceAttributes{Verb: "patch", Group: "autoscaling.k8s.io", Resource: "verticalpodautoscalers",
				Subresource: "status", Namespace: "shop-a"},
			[]string{"shop-a/cart: ", `cannot patch resource "verticalpodautoscalers/status"`,
				"2 of 2 autoscalers were left as they are"}},
		"deployments": {authz.ResourceAttributes{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "shop-a"},
			[]string{"shop-a/cart: ", `cannot get resource "deployments"`, "2 of 2 autoscalers were left as they are"}},
	} {
		r.may(without(r.role.Rules, resource), false, c.of)
		r.fails(known(t, next), append(c.says, wayOut, "system:serviceaccount:unthrottle:"+recommenderName)...)
		r.may(r.role.Rules, true, c.of)
	}
	r.unchanged("without rights", was)
	out, err := r.runAs("nobody's", known(t, next))
	if err == nil || !strings.Contains(out, "the API server does not take the token: ") {
		t.Errorf("%v: %s", err, out)
	}
}

func (r *recommender) serverRestarts(t *testing.T) {
	was := r.versions()
	token := r.token("unthrottle", recommenderName)
	_ = r.API.End(syscall.SIGKILL) // it says that it was killed
	out, err := r.runAs(token, known(t, cartKnown))
	if err == nil || !strings.Contains(out, "the VerticalPodAutoscalers cannot be listed: ") ||
		!strings.Contains(out, "connection refused") {
		t.Errorf("%v: %s", err, out)
	}
	r.startAPI()
	r.unchanged("a restart", was)
	// One that starts refuses all until it has read the roles.
	wait.Until(t, "the program works again", func() bool {
		out, err = r.run(known(t, "cart/app 0.4 0.5 0.6"))
		return err == nil
	}, func() string { return out })
	if got, want := cpus(r.autoscaler("cart"), "app"), "300m 200m 300m 300m"; got != want {
		t.Errorf("cart's app gets %s, want %s", got, want)
	}
}

func (r *recommender) containerRenamed(t *testing.T) {
	_, err := r.objects.Resource(deployments).Namespace("shop-a").Patch(t.Context(), "cart", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/name","value":"web"}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.writes(known(t, cartKnown), 2, 2)
	if _, there, _ := unstructured.NestedMap(r.autoscaler("bounded").Object, "status", "recommendation"); there {
		t.Error("a container that the template no longer has keeps its recommendation")
	}
	if got := cpus(r.autoscaler("cart"), "app") + cpus(r.autoscaler("cart"), "proxy"); got != "300m 100m 300m 300m" {
		t.Errorf("cart is %s", got)
	}
	r.writes(known(t, cartKnown), 2, 0)
}

func (r *recommender) workloadDeleted(t *testing.T) {
	if err := r.objects.Resource(deployments).Namespace("shop-a").Delete(t.Context(), "cart", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.writes(known(t, cartKnown), 2, 2)
	cart := r.autoscaler("cart")
	if got := said(cart); !strings.Contains(got,
		`RecommendationProvided=False NotKnown: there is no Deployment "cart"`) || cpus(cart, "proxy") == "" {
		t.Errorf("cart is %s", got)
	}
	r.writes(known(t, cartKnown), 2, 0)
}

func (r *recommender) moreThanAPage(t *testing.T) {
	// The API server lists them by namespace and name: the two that name this recommender are on the second page.
	for i := range 510 {
		u := r.ofCart[2].DeepCopy()
		if i >= 508 {
			u = r.ofCart[0].DeepCopy()
		}
		u.SetNamespace("shop-b")
		u.SetName(fmt.Sprintf("cart-%03d", i))
		if _, err := r.objects.Resource(autoscalers).Namespace("shop-b").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.writes(known(t, cartKnown), 2+2, 2)
	if err := r.objects.Resource(autoscalers).Namespace("shop-b").DeleteCollection(t.Context(),
		metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (r *recommender) withoutStatus(t *testing.T) {
	crds := r.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	if _, err := crds.Patch(t.Context(), autoscalers.GroupResource().String(), types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/spec/versions/0/subresources"}]`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	var err error
	wait.Until(t, "the definition has no status",
		func() bool { err = r.status("other", "{}"); return apierrors.IsNotFound(err) }, func() string { return fmt.Sprint(err) })
	r.makes("a workload", docs(t, []byte(cartDeployment)))
	r.fails(known(t, cartKnown), "shop-a/cart: it is gone, or its definition has no subresource status: ",
		`cannot patch resource "verticalpodautoscalers" `, "; let the role patch verticalpodautoscalers, too")
	r.may(append(slices.Clone(r.role.Rules),
		rbac.PolicyRule{APIGroups: []string{autoscalers.Group}, Resources: []string{autoscalers.Resource},
			Verbs: []string{"patch"}}), true,
		authz.ResourceAttributes{Verb: "patch", Group: autoscalers.Group, Resource: autoscalers.Resource, Namespace: "shop-a"})
	r.writes(known(t, cartKnown), 2, 2)
	if got, want := cpus(r.autoscaler("cart"), "app"), "550m 400m 550m 550m"; got != want {
		t.Errorf("cart's app gets %s, want %s", got, want)
	}
}

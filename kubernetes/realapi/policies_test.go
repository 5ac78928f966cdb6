package realapi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// sidecar is the container policies of one node.
type sidecar struct {
	*apiserver.Process
	out string
}

// sidecar starts one with the chart's arguments; files, API server and the least time between writes are the test's.
func (s *server) sidecar(pod string) *sidecar {
	s.t.Helper()
	return s.sidecarOn("", "policies", pod, chartFile(s.t, "policies"))
}

// sidecarOn starts one on a node, with the arguments of a golden file of the chart, beside an agent's own file.
func (s *server) sidecarOn(node, file, pod, own string) *sidecar {
	s.t.Helper()
	base := s.File("unthrottle.yaml")
	if err := os.WriteFile(base, []byte(own), 0o600); err != nil {
		s.t.Fatal(err)
	}
	dir := s.File(pod)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	c := &sidecar{out: filepath.Join(dir, "rules.yaml")}
	args := append(arguments(s.t, file, "policies"), "--base", base, "--out", c.out, "--kubeconfig",
		s.kubeconfig(s.token("unthrottle", "unthrottle")), "--least-interval", "1ms", "--lease-interval", "2s")
	cmd := exec.Command(s.program(), args...)
	cmd.Env = append(os.Environ(), "POD_NAME="+pod, "POD_NAMESPACE=unthrottle", "NODE_NAME="+node)
	c.Process = apiserver.Start(s.t, s.Dir, pod, cmd)
	return c
}

// ruleFor is the policy and the remedy of the rule in force for a container of a namespace; "": there is none.
func (c *sidecar) ruleFor(namespace, pod string) string {
	text, err := os.ReadFile(c.out)
	if err != nil {
		return ""
	}
	rules, err := policy.ParseRules(text)
	if err != nil {
		return err.Error()
	}
	r := rules.For(container.Container{Name: namespace + "/" + pod + "/app", Namespace: namespace, Pod: pod, ContainerName: "app"}, nil)
	if r == nil {
		return ""
	}
	return fmt.Sprint(r.Policy, ", ", r.Mode, " ", r.Word())
}

// look is what it printed, and the file that it wrote.
func (c *sidecar) look() string {
	text, _ := os.ReadFile(c.out) // it may not be there yet
	return c.Printed() + "\n" + string(text)
}

// aPolicy is one with a spec in YAML; the namespace "" makes it cluster-wide.
func aPolicy(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	kind := "ThrottlePolicy"
	if namespace == "" {
		kind = "ClusterThrottlePolicy"
	}
	u := docs(t, []byte("apiVersion: unthrottle.dev/v1alpha1\nkind: "+kind+"\nmetadata: {name: "+name+"}\nspec: "+spec+"\n"))[0]
	u.SetNamespace(namespace)
	return u
}

// now is the object as it is.
func (s *server) now(u *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	resourceInterface, err := s.of(u)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := resourceInterface.Get(s.t.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// conditions are the conditions of the newest spec, a line for each: TYPE=STATUS REASON: MESSAGE.
func conditions(u *unstructured.Unstructured) string {
	if at, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); at != u.GetGeneration() {
		return fmt.Sprintf("of generation %d, not %d", at, u.GetGeneration())
	}
	return said(u)
}

// said are the conditions of an object, a line for each: TYPE=STATUS REASON: MESSAGE.
func said(u *unstructured.Unstructured) string {
	var out strings.Builder
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		c := c.(map[string]any)
		fmt.Fprintf(&out, "%v=%v %v: %v\n", c["type"], c["status"], c["reason"], c["message"])
	}
	return out.String()
}

// becomes waits until a policy's conditions have all of the texts.
func (s *server) becomes(c *sidecar, u *unstructured.Unstructured, want ...string) {
	s.t.Helper()
	wait.Until(s.t, fmt.Sprintf("%s %s/%s is %q", u.GetKind(), u.GetNamespace(), u.GetName(), want), func() bool {
		got := conditions(s.now(u))
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(got, w) })
	}, func() string { return conditions(s.now(u)) + "\n" + c.look() })
}

// events are those of an object, a line for each: TYPE REASON: MESSAGE.
func (s *server) events(u *unstructured.Unstructured) string {
	s.t.Helper()
	namespace := u.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	list, err := s.client.CoreV1().Events(namespace).List(s.t.Context(),
		metav1.ListOptions{FieldSelector: "involvedObject.name=" + u.GetName() + ",involvedObject.kind=" + u.GetKind()})
	if err != nil {
		s.t.Fatal(err)
	}
	var lines []string
	for _, e := range list.Items {
		lines = append(lines, fmt.Sprintf("%s %s: %s\n", e.Type, e.Reason, e.Message))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// told waits until an object has this event.
func (s *server) told(u *unstructured.Unstructured, want string) {
	s.t.Helper()
	wait.Until(s.t, "an event "+want, func() bool { return strings.Contains(s.events(u), want) }, func() string { return s.events(u) })
}

// change gives a policy another spec.
func (s *server) change(u *unstructured.Unstructured, spec string) {
	s.t.Helper()
	resourceInterface, err := s.of(u)
	if err != nil {
		s.t.Fatal(err)
	}
	wait.Until(s.t, "the policy is changed", func() bool { // a status that is written meanwhile is a conflict
		next := s.now(u)
		next.Object["spec"] = aPolicy(s.t, u.GetNamespace(), u.GetName(), spec).Object["spec"]
		_, err = resourceInterface.Update(s.t.Context(), next, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		return err == nil
	}, func() string { return err.Error() })
}

// policyStory has the example's policy of a namespace, and the first of its nodes.
type policyStory struct {
	*server
	cart  *unstructured.Unstructured
	first *sidecar // the one that writes statuses
}

// made creates an object.
func (s *policyStory) made(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := s.create(u); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestPolicies: the chart's definitions, rights and program on a real API server.
func TestPolicies(t *testing.T) {
	s := &policyStory{server: newServer(t)}
	s.install("policies")
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "throttlepolicy.md"))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the page has no example")
	}
	both := docs(t, example[1])
	shops := s.made(t, both[0])
	s.cart, s.first = s.made(t, both[1]), s.sidecar("pod-a")

	s.becomes(s.first, shops, "Accepted=True Accepted: its rules are in force", "Conflicted=False")
	s.becomes(s.first, s.cart, "Accepted=True", "Conflicted=False")
	s.told(shops, "Normal Accepted: its rules are in force")
	s.told(s.cart, "Normal Accepted: its rules are in force")
	if got, want := s.first.ruleFor("shop-a", "cart-0"), "ThrottlePolicy shop-a/cart, apply auto"; got != want {
		t.Errorf("the rule of a cart is %q, want %q\n%s", got, want, s.first.look())
	}

	t.Run("what the schema refuses", s.schemaRefuses)
	t.Run("mistakes that the schema cannot say", s.mistakes)
	t.Run("the last good spec stays", s.lastGoodStays)
	t.Run("a second node and a restart", s.secondNode)
	t.Run("without the API server", s.withoutAPI)
	t.Run("a policy is deleted", s.deleted)
}

func (s *policyStory) schemaRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"{rules: [{remedy: pray}]}":                                    `spec.rules[0].remedy: Unsupported value: "pray"`,
		"{rules: [{remedy: auto, canary: 5}]}":                         `unknown field "spec.rules[0].canary"`,
		"{mode: canary}":                                               `spec.mode: Unsupported value: "canary"`,
		"{allow: {mode: apply}}":                                       `unknown field "spec.allow"`,
		"{rules: [{match: {namespace: kube-system}}]}":                 `unknown field "spec.rules[0].match.namespace"`,
		"{rules: [{match: {cgroup: /a}}]}":                             `unknown field "spec.rules[0].match.cgroup"`,
		"{rules: [{slo: {command: reboot}}]}":                          `unknown field "spec.rules[0].slo.command"`,
		"{rules: [{remedy: raise, factor: 2, to: 3}]}":                 "give factor or to, not both",
		"{mode: apply, rules: [{remedy: auto}]}":                       "write verify: probe",
		"{rules: [{remedy: pin, cpus: 1.5}]}":                          "spec.rules[0].cpus",
		"{rules: [{remedy: narrow, credit: soon}]}":                    "spec.rules[0].credit",
		"{rules: [" + strings.Repeat("{}, ", 16) + "{}]}":              "spec.rules: Too many",
		"{rules: [{match: {name: " + strings.Repeat("x", 300) + "}}]}": "spec.rules[0].match.name: Too long",
		"{rules: {}}": "spec.rules",
	} {
		if err := s.create(aPolicy(t, "shop-a", "refused", spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

func (s *policyStory) mistakes(t *testing.T) {
	invalid := s.made(t, aPolicy(t, "shop-a", "invalid", "{rules: [{match: {name: 'x*'}, remedy: burst, cpus: 2}]}"))
	notAllowed := s.made(t, aPolicy(t, "batch", "pins", "{rules: [{remedy: pin}]}"))
	later := s.made(t, aPolicy(t, "shop-a", "later", "{rules: [{match: {name: 'cart-*'}, remedy: none}]}"))
	s.becomes(s.first, invalid, "Accepted=False Invalid: spec.rules[0].cpus: ", "none of it is in force", "Conflicted=False")
	s.becomes(s.first, notAllowed, "Accepted=False NotAllowed: spec.rules[0].remedy: ", "none of it is in force")
	s.becomes(s.first, later, "Accepted=True", "Conflicted=True RuleNeverCounts: spec.rules[0] never counts: rules[0] "+
		"of the earlier ThrottlePolicy shop-a/cart")
	s.told(invalid, "Warning Invalid: spec.rules[0].cpus: ")
	s.told(notAllowed, "Warning NotAllowed: spec.rules[0].remedy: ")
	s.told(later, "Warning Conflicted: spec.rules[0] never counts")
	s.told(later, "Normal Accepted: ")
	if _, there, _ := unstructured.NestedMap(s.now(invalid).Object, "status", "inForce"); there {
		t.Error("an invalid policy has something in force")
	}
	if got := s.first.ruleFor("shop-a", "cart-0"); got != "ThrottlePolicy shop-a/cart, apply auto" {
		t.Errorf("the older of two policies does not count: %q", got)
	}
	if got := s.first.ruleFor("batch", "etl-0"); got != "" {
		t.Errorf("a rule that is not allowed is in force: %q", got)
	}
}

func (s *policyStory) lastGoodStays(t *testing.T) {
	s.change(s.cart, "{mode: apply, rules: [{match: {name: 'cart-*'}, remedy: auto, verify: probe, slo: {objective: fast}}]}")
	s.becomes(s.first, s.cart, "Accepted=False Invalid: spec.rules[0].slo.objective: ",
		"what was accepted before (generation 1) stays in force")
	s.told(s.cart, "Warning Invalid: spec.rules[0].slo.objective: ")
	if at, _, _ := unstructured.NestedInt64(s.now(s.cart).Object, "status", "inForce", "generation"); at != 1 {
		t.Errorf("in force is generation %d", at)
	}
	if got := s.first.ruleFor("shop-a", "cart-0"); got != "ThrottlePolicy shop-a/cart, apply auto" {
		t.Errorf("the last good spec is not in force: %q", got)
	}
}

func (s *policyStory) secondNode(t *testing.T) {
	b := s.sidecar("pod-b")
	wait.Until(t, "the second node has the same file", func() bool {
		one, err1 := os.ReadFile(s.first.out)
		two, err2 := os.ReadFile(b.out)
		return err1 == nil && err2 == nil && string(one) == string(two)
	}, b.look)
	if got := b.ruleFor("shop-a", "cart-0"); got != "ThrottlePolicy shop-a/cart, apply auto" {
		t.Errorf("a node that starts after the mistake does not have the last good spec: %q", got)
	}
	was := s.now(s.cart).GetResourceVersion()
	if err := s.first.End(syscall.SIGTERM); err != nil {
		t.Errorf("it ends with %v", err)
	}
	// It gave the lease back: the second one writes statuses, and only what changed.
	one := s.made(t, aPolicy(t, "shop-b", "one", "{rules: [{remedy: none}]}"))
	s.becomes(b, one, "Accepted=True")
	if now := s.now(s.cart).GetResourceVersion(); now != was {
		t.Errorf("the status of a policy that did not change was written again: %s", conditions(s.now(s.cart)))
	}
	if got := s.events(s.cart); strings.Count(got, "\n") != 2 {
		t.Errorf("a change of a condition is not one event: %s", got)
	}
	// Looked at before the API server is restarted: one that starts refuses all until it has read the roles.
	for _, c := range []*sidecar{s.first, b} {
		if got := c.Printed(); strings.Contains(got, "forbidden") || strings.Contains(got, "level=WARN") {
			t.Errorf("with the chart's rights it says: %s", got)
		}
	}
	s.first = b
}

func (s *policyStory) withoutAPI(t *testing.T) {
	before, err := os.ReadFile(s.first.out)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.API.End(syscall.SIGKILL) // it says that it was killed
	wait.Until(t, "the program says so", func() bool { return strings.Contains(s.first.Printed(), "the lease cannot be renewed") }, s.first.look)
	if after, err := os.ReadFile(s.first.out); err != nil || string(after) != string(before) || s.first.Ended() {
		t.Errorf("without the API server the file is not what it was: %v, %s", err, s.first.look())
	}
	s.startAPI()
	two := s.made(t, aPolicy(t, "shop-b", "two", "{rules: [{match: {name: 'x*'}}]}"))
	s.becomes(s.first, two, "Accepted=True", "Conflicted=True")
}

func (s *policyStory) deleted(t *testing.T) {
	resourceInterface, err := s.of(s.cart)
	if err != nil {
		t.Fatal(err)
	}
	if err := resourceInterface.Delete(t.Context(), s.cart.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the next policy counts",
		func() bool { return s.first.ruleFor("shop-a", "cart-0") == "ThrottlePolicy shop-a/later, observe none" }, s.first.look)
}

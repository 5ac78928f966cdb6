package pooleddemand

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An object of a stranger that is not what it should be tells nothing, and its name is kept.
func TestObjectOf(t *testing.T) {
	good, err := json.Marshal(tells(map[string]int{"web-0": 2}))
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		string(good): "", `{"version": 2}`: "version 2", `null`: "version 0", `{"version": "1"}`: "cannot unmarshal",
		strings.Replace(string(good), `"mostCPUs":2`, `"mostCPUs":1`, 1): "phases[0]",
	} {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(`{"apiVersion": "unthrottle.dev/v1alpha1", "kind": "NodeDemand", `+
			`"metadata": {"name": "n"}, "spec": `+spec+`}`), &u.Object); err != nil {
			t.Fatal(err)
		}
		got, err := objectOf(u)
		if err != nil {
			t.Fatal(err)
		}
		o := got.(*object)
		if o.Name != "n" || (o.told == nil) != (want != "") || want != "" && !strings.Contains(o.why.Error(), want) {
			t.Errorf("%s: %+v, want %q", spec, o, want)
		}
		if again, err := objectOf(o); err != nil || again != any(o) {
			t.Errorf("read twice: %v, %v", again, err)
		}
	}
}

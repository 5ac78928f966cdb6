package policies

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

// TestPage: the example of the page is accepted, and its rule is in force.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "throttlepolicy.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no example")
	}
	var objects []Object
	for d := yaml.NewDecoder(bytes.NewReader(found[1])); ; {
		var doc struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   struct{ Name, Namespace string }
			Spec       map[string]any
		}
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if doc.APIVersion != "unthrottle.dev/v1alpha1" {
			t.Errorf("apiVersion %q", doc.APIVersion)
		}
		objects = append(objects, Object{Kind: doc.Kind, Namespace: doc.Metadata.Namespace, Name: doc.Metadata.Name,
			Generation: 1, Spec: asAPI(doc.Spec).(map[string]any)})
	}
	out, rules := merged(t, objects...)
	for key, st := range out.Statuses {
		if st.Wrong != nil || st.Conflicts != nil {
			t.Errorf("%s: %v, %v", key, st.Wrong, st.Conflicts)
		}
	}
	if r := rules.For(in("shop-a"), nil); len(objects) != 2 || r == nil || r.Policy != "ThrottlePolicy shop-a/cart" ||
		r.Mode != policy.Apply {
		t.Errorf("%d policies; the rule in force is %+v", len(objects), r)
	}
}

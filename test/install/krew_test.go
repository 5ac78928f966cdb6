package install

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestKrewManifest: filled in as `make plugin` does, the manifest has what krew asks for.
func TestKrewManifest(t *testing.T) {
	sum := strings.Repeat("a1", 32)
	text := strings.NewReplacer("@VERSION@", "v1.2.3", "@ARCH@", "amd64", "@URI@", "https://example.org/p.tar.gz", "@SHA256@", sum).
		Replace(string(fileOf(t, root+"/packaging/krew.yaml")) + string(fileOf(t, root+"/packaging/krew-platform.yaml")))
	if strings.Contains(text, "@") {
		t.Errorf("something is not filled in:\n%s", text)
	}
	var m struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Version          string
			ShortDescription string `yaml:"shortDescription"`
			Description      string
			Platforms        []struct {
				Selector struct {
					MatchLabels map[string]string `yaml:"matchLabels"`
				}
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" ||
		m.Metadata.Name != "unthrottle" || m.Spec.Version != "v1.2.3" {
		t.Errorf("%+v", m)
	}
	if n := len(m.Spec.ShortDescription); n == 0 || n > 50 || m.Spec.Description == "" {
		t.Errorf("the short description has %d letters, and 50 are shown", n)
	}
	if len(m.Spec.Platforms) != 1 {
		t.Fatalf("%+v", m.Spec.Platforms)
	}
	p := m.Spec.Platforms[0]
	makefile := string(fileOf(t, root+"/packaging/packaging.mk"))
	if p.Selector.MatchLabels["os"] != "linux" || p.Selector.MatchLabels["arch"] != "amd64" || p.URI == "" ||
		p.SHA256 != sum || len(p.Files) == 0 ||
		!regexp.MustCompile(`(?m)^\t  cp \S+/`+regexp.QuoteMeta(p.Bin)+` \S+/kubectl_complete-unthrottle `).MatchString(makefile) {
		t.Errorf("%+v", p)
	}
}

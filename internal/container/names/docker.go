package names

import (
	"encoding/json"
	"fmt"
)

// MaxContainers bounds how many containers of one answer are read.
const MaxContainers = 1 << 14

// Containers reads the answer to GET /containers/json of Docker, and of Podman, which answers alike. The key is the id.
// Entries without a proper id are left out. An answer that is no such list is an error.
func Containers(answer []byte) (map[string]Names, error) {
	var all []struct {
		ID     string `json:"Id"`
		Names  []string
		Image  string
		Labels map[string]string
	}
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, fmt.Errorf("not a list of containers: %w", plainJSON(err))
	}
	found := make(map[string]Names, min(len(all), MaxContainers))
	for _, c := range all[:min(len(all), MaxContainers)] {
		if _, twice := found[c.ID]; twice || !IsID(c.ID) {
			continue
		}
		n := Names{Image: shown(c.Image)}
		if len(c.Names) > 0 {
			n.Name = bare(ownName(c.Names))
		}
		n.fromLabels(c.Labels)
		found[c.ID] = n
	}
	return found, nil
}

// ownName is the container's own among its names: Docker also lists "/other/alias" for links from other containers.
func ownName(all []string) string {
	for _, name := range all {
		if bare := bare(name); bare != "" && IsPlain(bare) {
			return name
		}
	}
	return all[0]
}

// IsPlain accepts the names that Docker and Podman give to containers: [a-zA-Z0-9_.-].
func IsPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return s != ""
}

// DockerConfig reads Docker's containers/ID/config.v2.json.
func DockerConfig(file []byte) (Names, error) {
	var c struct {
		Name   string
		Config struct {
			Image  string
			Labels map[string]string
		}
	}
	if err := json.Unmarshal(file, &c); err != nil {
		return Names{}, fmt.Errorf("not Docker's config.v2.json: %w", plainJSON(err))
	}
	n := Names{Runtime: Docker, Name: bare(c.Name), Image: shown(c.Config.Image)}
	n.fromLabels(c.Config.Labels)
	return n, nil
}

// plainJSON leaves the stranger's text out of an error of encoding/json.
func plainJSON(err error) error {
	switch e := err.(type) {
	case *json.SyntaxError:
		return fmt.Errorf("broken JSON at byte %d", e.Offset)
	case *json.UnmarshalTypeError:
		return fmt.Errorf("unexpected JSON at byte %d", e.Offset)
	}
	return fmt.Errorf("unexpected JSON")
}

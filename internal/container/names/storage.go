package names

import (
	"encoding/json"
	"fmt"
)

// Storage reads containers.json of containers/storage, which Podman and CRI-O share. The key is the id.
func Storage(file []byte) (map[string]Names, error) {
	var all []struct {
		ID       string
		Names    []string
		Metadata string
	}
	if err := json.Unmarshal(file, &all); err != nil {
		return nil, fmt.Errorf("not a containers.json: %w", plainJSON(err))
	}
	found := make(map[string]Names, min(len(all), MaxContainers))
	for _, c := range all[:min(len(all), MaxContainers)] {
		if !IsID(c.ID) {
			continue
		}
		n := Names{}
		if len(c.Names) > 0 {
			n.Name = bare(c.Names[0])
		}
		var metadata struct {
			Image string `json:"image-name"`
		}
		if json.Unmarshal([]byte(c.Metadata), &metadata) == nil {
			n.Image = shown(metadata.Image)
		}
		found[c.ID] = n
	}
	return found, nil
}

package names

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// Bundle is what a container's config.json says, the file that a runtime writes for runc or crun.
type Bundle struct {
	Names
	// Cgroup is the container's cgroup in all hierarchies, "/a/b"; "" where the file leaves it to systemd or to runc.
	Cgroup string
	// DockerDir is the absolute folder that holds Docker's files of this container; "" where it is not Docker's.
	DockerDir string
}

// ParseBundle reads config.json of the container with this id.
func ParseBundle(file []byte, id string) (Bundle, error) {
	var c struct {
		Annotations map[string]string
		Mounts      []struct{ Destination, Source string }
		Linux       struct{ CgroupsPath string }
	}
	if err := json.Unmarshal(file, &c); err != nil {
		return Bundle{}, fmt.Errorf("not a config.json of the OCI runtime specification: %w", plainJSON(err))
	}
	b := Bundle{Names: FromLabels(c.Annotations)}
	b.Name = shown(first(c.Annotations, nameKeys))
	b.Sandbox = first(c.Annotations, kindKeys) == "sandbox"
	b.CRI = b.Pod != ""
	switch {
	case c.Annotations["io.container.manager"] == "libpod":
		b.Runtime = Podman
	case c.Annotations["io.container.manager"] == CRIO:
		b.Runtime = CRIO
	}
	if cgroup := c.Linux.CgroupsPath; strings.HasPrefix(cgroup, "/") && cgroup == path.Clean(cgroup) && cgroup != "/" {
		b.Cgroup = cgroup
	}
	for _, m := range c.Mounts {
		if dir := path.Dir(m.Source); m.Destination == "/etc/hostname" && path.IsAbs(dir) && path.Clean(m.Source) == m.Source &&
			path.Base(dir) == id && path.Base(path.Dir(dir)) == "containers" {
			b.DockerDir = dir
		}
	}
	return b, nil
}

package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
)

// wanted are the containers that place.md shows above its picture.
func wanted(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/place.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "`wanted.yaml`:\n\n"+fence+"yaml\n")
	list, _, ok := strings.Cut(rest, fence)
	if !ok {
		t.Fatal("place.md does not show `wanted.yaml`:")
	}
	return list
}

// What needs files only prints the very bytes that its page shows.
func TestOffline(t *testing.T) {
	dir := t.TempDir()
	machine, err := json.Marshal(topologytest.Shape{Sockets: 2, CoresPerL3: 4, Threads: 2}.Machine(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"machine.json": string(machine), "wanted.yaml": wanted(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sys := filepath.Join(dir, "sys")
	if err := os.CopyFS(sys, topologytest.Tree(t, "hybrid-16")); err != nil {
		t.Fatal(err)
	}
	made := map[string]printed{}
	for _, r := range table {
		if r.scene != offline {
			continue
		}
		c := call{args: words(r.command), columns: "100"}
		switch c.args[0] {
		case "place":
			c.dir = dir
		case "topology":
			c.args = append(c.args, "--sysfs", sys)
		}
		made[r.command] = printed{lines: c.output(t)}
	}
	hold(t, offline, made)
}

package docs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// clusterPage is the tutorial on Kubernetes.
const clusterPage = "docs/tutorial/kubernetes.md"

// saidFile is the file in which make e2e-tutorial leaves what the tutorial's commands printed on its cluster, by command.
const saidFile = "UNTHROTTLE_TUTORIAL"

// The tutorial on Kubernetes: its commands ran on a real cluster.
func TestKubernetesTutorial(t *testing.T) {
	name := os.Getenv(saidFile)
	if name == "" {
		t.Skip("needs a cluster: make e2e-tutorial runs it, and gives it in " + saidFile)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var said map[string]string
	if err := json.Unmarshal(text, &said); err != nil {
		t.Fatal(err)
	}
	made := map[string]printed{}
	for command, text := range said {
		made[command] = printed{lines: strings.Split(text, "\n")}
	}
	hold(t, cluster, made)
}

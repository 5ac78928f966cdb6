package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The node's name in rows is the file's, and else that of --node.
func TestAgentNode(t *testing.T) {
	for text, want := range map[string]string{"": "flag", ", node: file": "file"} {
		name := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(name, []byte("version: 1\nexport: {dir: /rows"+text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := agentFlags{config: name, nri: nriOff, node: "flag"}.read(t.Context(), newAgent())
		if err != nil || c.rules.Export.Node != want {
			t.Errorf("%q: %v, %q, want %q", text, err, c.rules.Export.Node, want)
		}
	}
}

package policy

import (
	"strings"
	"testing"
	"time"
)

func TestExportRules(t *testing.T) {
	const head = "version: 1\n"
	r, err := ParseRules([]byte(head + "export: {dir: /var/lib/x, cluster: eu1, node: n1, every: 5m}\n"))
	if err != nil || r.Export != (Export{"/var/lib/x", "eu1", "n1", 720 * time.Hour, 1 << 30}) {
		t.Errorf("%+v, %v", r.Export, err)
	}
	r, err = ParseRules([]byte(head + "export: {dir: /var/lib/x, keep_for: 168h, keep_size: 100MiB}\n"))
	if err != nil || r.Export.KeepFor != 168*time.Hour || r.Export.KeepBytes != 100<<20 {
		t.Errorf("%+v, %v", r.Export, err)
	}
	for text, says := range map[string]string{
		"export: {cluster: eu1}":            "export without dir",
		"export: {dir: x}":                  "is not an absolute path",
		"export: {dir: /x, every: 1m}":      "5m",
		"export: {dir: /x, folder: y}":      "folder",
		"export: {dir: /x, keep_for: 1h}":   "from 24h0m0s",
		"export: {dir: /x, keep_for: 0}":    "",
		"export: {dir: /x, keep_size: 1GB}": "64MiB",
		"export: /x":                        "",
		"export: {dir: /x, node: [a, b]}":   "",
	} {
		if _, err := ParseRules([]byte(head + text + "\n")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

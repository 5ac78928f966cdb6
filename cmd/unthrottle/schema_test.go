package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

const schemaDir = "testdata/schema"

func schemaFile(name string) string { return filepath.Join(schemaDir, name+".v1.json") }

// The published schemas are those of the types. UPDATE_GOLDEN=1 writes them.
func TestSchemasArePublished(t *testing.T) {
	for name := range documents {
		want, err := schemaText(name)
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(schemaFile(name), want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(schemaFile(name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what `%s` prints (%v): a key that is added is fine, UPDATE_GOLDEN=1 writes it; one "+
				"that goes or changes needs a new version", schemaFile(name), name, err)
		}
	}
	files, err := filepath.Glob(schemaFile("*"))
	if err != nil || len(files) != len(documents) {
		t.Errorf("%d schemas of %d documents, %v", len(files), len(documents), err)
	}
}

// Keys are snake_case, and lengths of time are in seconds; only latencies are in milliseconds.
func TestKeys(t *testing.T) {
	var visit func(document, at string, s *jsonschema.Schema)
	visit = func(document, at string, s *jsonschema.Schema) {
		if s == nil {
			return
		}
		for key, of := range s.Properties {
			if strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				t.Errorf("%s%s.%s is not in snake_case", document, at, key)
			}
			for _, unit := range []string{"_us", "_ns", "_microseconds", "_milliseconds", "_sec"} {
				if strings.HasSuffix(key, unit) {
					t.Errorf("%s%s.%s: a length of time is in _seconds, a latency in _ms", document, at, key)
				}
			}
			visit(document, at+"."+key, of)
		}
		visit(document, at+"[]", s.Items)
		visit(document, at+".*", s.AdditionalProperties)
	}
	as := shownAs()
	for name := range documents {
		schema, err := schemaOf(name, as)
		if err != nil {
			t.Fatal(err)
		}
		visit(name, "", schema)
	}
}

// published are the schemas as users have them: TestSchemasArePublished compares them with the files, which the lab has not.
var published = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	all, as := map[string]*jsonschema.Resolved{}, shownAs()
	for name := range documents {
		s, err := schemaOf(name, as)
		if err != nil {
			return nil, err
		}
		if all[name], err = s.Resolve(nil); err != nil {
			return nil, err
		}
	}
	return all, nil
})

// fits checks that a printed document is what its schema says.
func fits(t *testing.T, printed string) {
	t.Helper()
	schemas, err := published()
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(printed), &document); err != nil {
		t.Fatalf("no JSON object: %v in\n%.300s", err, printed)
	}
	name, _ := document["schema"].(string)
	schema, ok := schemas[name]
	if !ok {
		t.Fatalf("no schema %q", name)
	}
	if err := schema.Validate(document); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// What commands print fits. Those that need a kernel are checked wherever a test decodes what they print.
func TestDocumentsFitTheirSchemas(t *testing.T) {
	dir := placeFiles(t, map[string]string{"wanted.yaml": "- {name: db, cpus: 2}\n- {name: web, cpus: 1.5}\n"})
	state := t.TempDir()
	recorded := writtenRecording(t, true, 0)
	scenario := "../../examples/scenarios/conceptual.yaml"
	for _, args := range [][]string{
		{"version"}, {"topology"}, {"check"}, {"ls", "--for", "20ms"}, {"status", "--state-dir", state},
		{"status", "--history", "--state-dir", state},
		{"restore", "--dry-run", "--state-dir", state},
		{"demo", "--simulated", "--for", "500ms"}, {"simulate", scenario}, {"simulate", scenario, "--repeat", "2"},
		{"simulate", scenario, "--real", "--dry-run"},
		{"place", "--topology", filepath.Join(dir, "machine.json"), "--containers", filepath.Join(dir, "wanted.yaml")},
		{"explain", recorded}, {"forecast", recorded, "--slo", "p99<20ms", "--repeat", "1", "--load", "1"},
	} {
		t.Run(strings.Join(args[:1], " "), func(t *testing.T) {
			r := unraced(t, append(args, "--json")...)
			if r.code == exitNotMeasurable {
				t.Skip(r.errors)
			}
			if r.code != 0 {
				t.Fatalf("%v: exit code %d: %s", args, r.code, r.errors)
			}
			fits(t, r.out)
		})
	}
}

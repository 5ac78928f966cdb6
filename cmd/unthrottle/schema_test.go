package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/experiment/demo"
	"github.com/unthrottle/unthrottle/internal/experiment/fibtest"
	"github.com/unthrottle/unthrottle/internal/experiment/latency"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/ui/report/defrag"
	"github.com/unthrottle/unthrottle/internal/ui/report/explain"
	"github.com/unthrottle/unthrottle/internal/ui/report/fix"
	fleetview "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	"github.com/unthrottle/unthrottle/internal/ui/report/forecast"
	insideview "github.com/unthrottle/unthrottle/internal/ui/report/inside"
	"github.com/unthrottle/unthrottle/internal/ui/report/ls"
	placeview "github.com/unthrottle/unthrottle/internal/ui/report/place"
	runview "github.com/unthrottle/unthrottle/internal/ui/report/run"
	runtimesview "github.com/unthrottle/unthrottle/internal/ui/report/runtimes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/trial"
	"github.com/unthrottle/unthrottle/internal/ui/report/simulate"
	sizedview "github.com/unthrottle/unthrottle/internal/ui/report/sized"
	"github.com/unthrottle/unthrottle/topology"
)

// documents are the Go types of all JSON that commands print, by schema.
var documents = map[string]reflect.Type{
	"apply": reflect.TypeFor[apply.Result](), "restore": reflect.TypeFor[apply.Result](),
	"fix": reflect.TypeFor[fix.Document](), "defrag": reflect.TypeFor[defrag.Repair](),
	"status": reflect.TypeFor[statusDocument](), "history": reflect.TypeFor[historyDocument](),
	"ls": reflect.TypeFor[ls.Document](), "explain": reflect.TypeFor[explain.Document](),
	"forecast": reflect.TypeFor[forecast.Document](), "forecast_all": reflect.TypeFor[forecast.AllDocument](),
	"check": reflect.TypeFor[features.Report](), "topology": reflect.TypeFor[topology.Machine](),
	"version": reflect.TypeFor[build](), "place": reflect.TypeFor[placeview.JSON](),
	"demo": reflect.TypeFor[demo.Result](), "simulate": reflect.TypeFor[simulate.Simulation](),
	"run": reflect.TypeFor[trial.Trial](), "run_plan": reflect.TypeFor[runview.Plan](),
	"bench_service": reflect.TypeFor[capacity.Result](), "bench_latency": reflect.TypeFor[latency.Result](),
	"export": reflect.TypeFor[Exported](), "fleet_report": reflect.TypeFor[fleetview.Document](),
	"fleet_plan": reflect.TypeFor[fleetview.Plan](),
	"runtimes":   reflect.TypeFor[runtimesview.Document](), "sized": reflect.TypeFor[sizedview.Document](),
	"inside":        reflect.TypeFor[insideview.Document](),
	"policy":        reflect.TypeFor[policy.Report](),
	"bench_fibtest": reflect.TypeFor[fibtest.Result](), "bug_report": reflect.TypeFor[bugReportDocument](),
}

const schemaDir = "../../docs/reference/schema"

func schemaFile(name string) string { return filepath.Join(schemaDir, name+".v1.json") }

// shownAs are types whose JSON is not that of their fields.
func shownAs() map[reflect.Type]*jsonschema.Schema {
	optional := func(kind string) *jsonschema.Schema { return &jsonschema.Schema{Types: []string{"null", kind}} }
	as := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[features.Answer](): optional("boolean"),
		reflect.TypeFor[topology.ID]():     optional("integer"),
		reflect.TypeFor[topology.Kind]():   optional("string"),
	}
	of := func(t reflect.Type) *jsonschema.Schema {
		s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: as})
		if err != nil {
			panic(err)
		}
		return s
	}
	kernel := of(reflect.TypeFor[features.Kernel]())
	for _, name := range []string{"slice_seconds", "default_period_seconds"} {
		kernel.Properties[name] = optional("number")
		kernel.Required = append(kernel.Required, name)
	}
	as[reflect.TypeFor[features.Kernel]()] = kernel
	inForce := of(reflect.TypeFor[txn.InForce]())
	inForce.Properties["parameters"] = &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Types: []string{"number", "boolean", "string"}}}
	as[reflect.TypeFor[txn.InForce]()] = inForce
	past := inForce.CloneSchemas()
	past.Properties["until"], past.Properties["reason"] = of(reflect.TypeFor[time.Time]()), of(reflect.TypeFor[string]())
	past.Properties["skipped"] = of(reflect.TypeFor[[]txn.Skip]())
	past.Required = append(slices.Clone(past.Required), "until", "reason")
	as[reflect.TypeFor[txn.Past]()] = past
	node := of(reflect.TypeFor[struct {
		ID          int     `json:"id"`
		CPUs        *string `json:"cpus"`
		Distance    []int   `json:"distance"`
		MemoryBytes *uint64 `json:"memory_bytes"`
	}]())
	as[reflect.TypeFor[topology.NUMANode]()] = node
	return as
}

// schemaOf is the schema of a document, from its Go type.
func schemaOf(name string, as map[reflect.Type]*jsonschema.Schema) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(documents[name], &jsonschema.ForOptions{TypeSchemas: as})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "unthrottle " + strings.ReplaceAll(name, "_", " ") + ": version 1"
	schema, version := any(name), any(jsonout.Version)
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	s.Properties["schema"] = &jsonschema.Schema{Const: &schema}
	s.Properties["version"] = &jsonschema.Schema{Const: &version}
	s.Required = append([]string{"schema", "version"}, s.Required...)
	slices.Sort(s.Required[2:])
	nullableMaps(s)
	s.PropertyOrder = nil
	return s, nil
}

// nullableMaps lets every map be null, as Go writes a nil one. Structs keep theirs: they allow no other keys.
func nullableMaps(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Type == "object" && len(s.Properties) == 0 && s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		s.Type, s.Types = "", []string{"null", "object"}
	}
	for _, of := range s.Properties {
		nullableMaps(of)
	}
	nullableMaps(s.Items)
	nullableMaps(s.AdditionalProperties)
}

// The published schemas are those of the types. UPDATE_GOLDEN=1 writes them.
func TestSchemasArePublished(t *testing.T) {
	as := shownAs()
	for name := range documents {
		schema, err := schemaOf(name, as)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(schemaFile(name), want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(schemaFile(name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what `%s` prints (%v): a key that is added is fine, UPDATE_GOLDEN=1 writes it; one that goes or changes needs a new version", schemaFile(name), name, err)
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
		{"version"}, {"topology"}, {"check"}, {"ls", "--for", "20ms"}, {"status", "--state-dir", state}, {"status", "--history", "--state-dir", state},
		{"restore", "--dry-run", "--state-dir", state},
		{"demo", "--simulated", "--for", "500ms"}, {"simulate", scenario}, {"simulate", scenario, "--repeat", "2"}, {"run", scenario, "--dry-run"},
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

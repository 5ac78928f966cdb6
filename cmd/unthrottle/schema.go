package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

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
	runtimesview "github.com/unthrottle/unthrottle/internal/ui/report/runtimes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/scenariorun"
	"github.com/unthrottle/unthrottle/internal/ui/report/simulate"
	sizedview "github.com/unthrottle/unthrottle/internal/ui/report/sized"
	"github.com/unthrottle/unthrottle/topology"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:     "schema [DOCUMENT]",
		GroupID: groupLook,
		Short:   "Print the JSON schema of what a command prints with --json",
		Long: "Print the JSON schema of a document that a command prints with --json. Its name\nis the " +
			"value of \"schema\" in the document. Without DOCUMENT: list all.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(documentNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(documentNames(), "\n"))
				return err
			}
			if documents[args[0]] == nil {
				return fmt.Errorf("%q: no document has that name: 'unthrottle schema' lists them", args[0])
			}
			printed, err := schemaText(args[0])
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(printed)
			return err
		},
	}
}

func documentNames() []string { return slices.Sorted(maps.Keys(documents)) }

// schemaText is the schema of a document, indented.
func schemaText(name string) ([]byte, error) {
	schema, err := schemaOf(name, shownAs())
	if err != nil {
		return nil, err
	}
	printed, err := json.MarshalIndent(schema, "", "  ")
	return append(printed, '\n'), err
}

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
	"run": reflect.TypeFor[scenariorun.Run](), "run_plan": reflect.TypeFor[simulate.Plan](),
	"bench_service": reflect.TypeFor[capacity.Result](), "bench_latency": reflect.TypeFor[latency.Result](),
	"export": reflect.TypeFor[Exported](), "fleet_report": reflect.TypeFor[fleetview.Document](),
	"fleet_plan": reflect.TypeFor[fleetview.Plan](),
	"runtimes":   reflect.TypeFor[runtimesview.Document](), "sized": reflect.TypeFor[sizedview.Document](),
	"inside":        reflect.TypeFor[insideview.Document](),
	"policy":        reflect.TypeFor[policy.Report](),
	"bench_fibtest": reflect.TypeFor[fibtest.Result](), "bug_report": reflect.TypeFor[bugReportDocument](),
}

// shownAs are types whose JSON is not that of their fields.
func shownAs() map[reflect.Type]*jsonschema.Schema {
	optional := func(kind string) *jsonschema.Schema { return &jsonschema.Schema{Types: []string{"null", kind}} }
	as := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[features.Answer](): optional("boolean"),
		reflect.TypeFor[topology.ID]():     optional("integer"),
		reflect.TypeFor[topology.Kind]():   optional("string"),
	}
	schemaFor := func(t reflect.Type) *jsonschema.Schema {
		s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: as})
		if err != nil {
			panic(err)
		}
		return s
	}
	kernel := schemaFor(reflect.TypeFor[features.Kernel]())
	for _, name := range []string{"slice_seconds", "default_period_seconds"} {
		kernel.Properties[name] = optional("number")
		kernel.Required = append(kernel.Required, name)
	}
	as[reflect.TypeFor[features.Kernel]()] = kernel
	inForce := schemaFor(reflect.TypeFor[txn.InForce]())
	inForce.Properties["parameters"] = &jsonschema.Schema{
		Type: "object", AdditionalProperties: &jsonschema.Schema{Types: []string{"number", "boolean", "string"}}}
	as[reflect.TypeFor[txn.InForce]()] = inForce
	past := inForce.CloneSchemas()
	past.Properties["until"], past.Properties["reason"] = schemaFor(reflect.TypeFor[time.Time]()), schemaFor(reflect.TypeFor[string]())
	past.Properties["skipped"] = schemaFor(reflect.TypeFor[[]txn.Skip]())
	past.Required = append(slices.Clone(past.Required), "until", "reason")
	as[reflect.TypeFor[txn.Past]()] = past
	node := schemaFor(reflect.TypeFor[struct {
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
	for _, schema := range s.Properties {
		nullableMaps(schema)
	}
	nullableMaps(s.Items)
	nullableMaps(s.AdditionalProperties)
}

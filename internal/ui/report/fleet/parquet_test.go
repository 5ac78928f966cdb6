package fleet

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// written is a table of a document as its file has it.
func written(t *testing.T, of Table, d Document) *parquet.File {
	t.Helper()
	var b bytes.Buffer
	if err := of.Write(&b, d); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// read are the rows of a table, in the columns of R. The library's reader makes pointers of nulls where R embeds a
// struct; its writer does not.
func read[R any](t *testing.T, name string, d Document) []R {
	t.Helper()
	at := slices.IndexFunc(Tables, func(t Table) bool { return t.Name == name })
	f := written(t, Tables[at], d)
	r := parquet.NewGenericReader[R](f)
	rows := make([]R, f.NumRows())
	if n, err := r.Read(rows); n != len(rows) {
		t.Fatalf("%s: %d rows of %d, %v", name, n, len(rows), err)
	}
	return rows
}

// What a table has is what the document has; what is not known is null.
func TestTables(t *testing.T) {
	d := document()
	d.Services[1].Workload = &Workload{Kind: "Deployment", Namespace: "shop", Name: "cart", Container: "app", LimitCPUs: new(4.0)}
	d.ByRemedy = []ByRemedy{{Remedy: Pin, Asks: AsksNode, Priced: true, CoresNow: 3}, {Remedy: Lower, Rounding: new(0.1)}}
	d.Services[0].Prices = []Price{{Remedy: Pin, CPUs: 2, CPUsHigh: new(3.0)}, {Remedy: Lower, CPUs: 1.5}}
	if got := read[Price](t, "prices", d); !reflect.DeepEqual(got, d.Services[0].Prices) {
		t.Errorf("%+v", got)
	}
	d.Services[0].Prices = nil
	if got := read[ByRemedy](t, "remedies", d); !reflect.DeepEqual(got, d.ByRemedy) {
		t.Errorf("%+v", got)
	}
	if got := read[Service](t, "services", d); !reflect.DeepEqual(got, d.Services) {
		t.Errorf("%+v", got)
	}
	if got := read[Ledger](t, "ledger", d); !reflect.DeepEqual(got, []Ledger{d.Ledger}) {
		t.Errorf("%+v", got)
	}
	if got := read[AppliedDay](t, "applied_days", d); !reflect.DeepEqual(got, d.Applied[0].Days) {
		t.Errorf("%+v", got)
	}
	d.Applied[0].Days = nil
	if got := read[Applied](t, "applied", d); !reflect.DeepEqual(got, d.Applied) {
		t.Errorf("%+v", got)
	}
	if got := read[Default](t, "defaults", d); !reflect.DeepEqual(got, d.Defaults.Pools) {
		t.Errorf("%+v", got)
	}
	if got := read[Unknown](t, "unknown", d); !reflect.DeepEqual(got, d.Unknown) {
		t.Errorf("%+v", got)
	}
	for _, of := range Tables {
		for _, r := range read[ofReport](t, of.Name, d) {
			if !r.From.Equal(d.From) || !r.Until.Equal(d.Until) || r.Bound != d.Bound {
				t.Errorf("%s: %+v", of.Name, r)
			}
		}
	}
	if got := read[ledgerRow](t, "ledger", d)[0]; got.Hosts != d.Hosts || got.Containers != d.Containers || got.ByBounds != d.ByBounds {
		t.Errorf("%+v", got)
	}
	for _, of := range Tables { // a report may have none of a kind
		if f := written(t, of, Document{}); of.Name != "ledger" && f.NumRows() != 0 {
			t.Errorf("%s: %d rows of nothing", of.Name, f.NumRows())
		}
	}
}

// The page has each table's columns in their order, and JSON's names for them.
func TestTablesAreInTheirPage(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range Tables {
		f := written(t, of, Document{})
		if version, ok := f.Lookup("unthrottle.report"); !ok || version != TablesVersion ||
			!strings.Contains(string(page), "`unthrottle.report`: version "+TablesVersion) {
			t.Errorf("%s is of version %q", of.Name, version)
		}
		var want []string
		for _, c := range f.Schema().Columns() {
			want = append(want, strings.Join(c, "."))
		}
		m := regexp.MustCompile("(?m)^\\| `" + of.Name + ".parquet` \\| (.*) \\|$").FindSubmatch(page)
		if m == nil {
			t.Errorf("no row of %s", of.Name)
			continue
		}
		var got []string
		for _, name := range regexp.MustCompile("`([a-z0-9_.]+)`").FindAllSubmatch(m[1], -1) {
			got = append(got, string(name[1]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the page has\n%q, the file has\n%q", of.Name, got, want)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Service](), reflect.TypeFor[Workload](),
		reflect.TypeFor[Price](), reflect.TypeFor[ByRemedy](), reflect.TypeFor[Default](),
		reflect.TypeFor[Ledger](), reflect.TypeFor[Applied](), reflect.TypeFor[AppliedDay](), reflect.TypeFor[Unknown]()} {
		for _, f := range reflect.VisibleFields(of) {
			if column, _, _ := strings.Cut(f.Tag.Get("parquet"), ","); column != f.Tag.Get("json") && column != "-" {
				t.Errorf("%s.%s is %s in Parquet and %s in JSON", of.Name(), f.Name, column, f.Tag.Get("json"))
			}
		}
	}
}

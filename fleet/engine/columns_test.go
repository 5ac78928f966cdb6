package engine

import (
	"reflect"
	"testing"
	"time"
)

// A column is what the tags of its field say.
func TestColumnsOf(t *testing.T) {
	type part struct {
		Size int32 `parquet:"size,dict" bounds:"(0,9)"`
	}
	type row struct {
		Start  time.Time `parquet:"start,timestamp(millisecond)" sql:"start_ms"`
		Used   *float64  `parquet:"used,optional" bounds:"cpu [0,2*seconds]"`
		Count  *int64    `parquet:"count,optional" bounds:"cpu (0,)" since:"2"`
		Unread string    `parquet:"unread" sql:"-"`
		Parts  []part    `parquet:"parts,list" since:"1"`
	}
	want := []Column{
		{Name: "start", SQL: "start_ms", Kind: Milliseconds, NotNull: true},
		{Name: "used", SQL: "used", Kind: Double, Rule: "cpu", Bounds: []string{"used >= 0", "used <= 2*seconds"}},
		{Name: "count", SQL: "count", Kind: BigInt, Since: 2, Rule: "cpu", Bounds: []string{"count > 0"}},
		{Name: "parts", SQL: "parts", Kind: List, Elements: "parts", Since: 1, NotNull: true,
			Fields: []Column{{Name: "size", SQL: "size", Kind: Integer, NotNull: true, Bounds: []string{"size > 0", "size < 9"}}}},
	}
	got := columnsOf(reflect.TypeFor[row]())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	if s := got[1].outside(); s != "NOT (used >= 0 AND used <= 2*seconds)" {
		t.Error(s)
	}
	if s := got[3].Fields[0].outside(); s != "size IS NULL OR NOT (size > 0 AND size < 9)" {
		t.Error(s)
	}
}

// A file has the age of the generations of which it has every column.
func TestAge(t *testing.T) {
	for age := range Newest + 1 {
		lacks := ""
		for _, c := range Columns {
			if c.Since == age+1 {
				lacks = c.Name
			}
		}
		if got := Age(func(name string) bool { return name != lacks }); got != age {
			t.Errorf("without %q: %d, not %d", lacks, got, age)
		}
	}
}

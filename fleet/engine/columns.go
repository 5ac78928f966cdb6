package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/demand"
)

// Kind is what a column holds.
type Kind int

// Kinds of columns. Text is never null, but empty. Milliseconds are since 1970.
const (
	Integer Kind = iota + 1 // of 32 bits
	BigInt                  // of 64 bits
	Double
	Text
	Milliseconds
	List
)

// Column is a field of demand.Row that questions read, or one of the elements of its lists.
type Column struct {
	// Name is its name in the files, SQL that in tables.
	Name, SQL string
	Kind      Kind
	// Fields are the columns of a list's elements, and Elements is what the table of these is called, such as levels.
	Fields   []Column
	Elements string
	// Since is the generation in which it came.
	Since   int
	NotNull bool
	// Rule is what its bounds are a part of. They are conditions in SQL.
	Rule   string
	Bounds []string
}

// Columns are those of the rows that questions read, in the order of the table.
var Columns = columnsOf(reflect.TypeFor[demand.Row]())

// lists are the columns that hold lists.
var lists = slices.DeleteFunc(slices.Clone(Columns), func(c Column) bool { return c.Kind != List })

// Newest is the age of files that have all columns. A file of an age has those of the generations up to it.
var Newest = slices.MaxFunc(Columns, func(a, b Column) int { return a.Since - b.Since }).Since

var kinds = map[reflect.Kind]Kind{
	reflect.Int32: Integer, reflect.Int64: BigInt, reflect.Float64: Double, reflect.String: Text,
	reflect.Struct: Milliseconds, reflect.Slice: List,
}

// columnsOf reads the fields and tags of a struct.
func columnsOf(row reflect.Type) (columns []Column) {
	for _, f := range reflect.VisibleFields(row) {
		c := Column{SQL: f.Tag.Get("sql"), NotNull: f.Type.Kind() != reflect.Pointer}
		if c.SQL == "-" {
			continue
		}
		c.Name, _, _ = strings.Cut(f.Tag.Get("parquet"), ",")
		if c.SQL == "" {
			c.SQL = c.Name
		}
		holds := f.Type
		if !c.NotNull {
			holds = holds.Elem()
		}
		if c.Kind = kinds[holds.Kind()]; c.Kind == List {
			c.Fields, c.Elements = columnsOf(holds.Elem()), strings.ToLower(holds.Elem().Name())+"s"
		}
		if since := f.Tag.Get("since"); since != "" {
			var err error
			if c.Since, err = strconv.Atoi(since); err != nil {
				panic("column " + c.Name + ": its tag since is no number: " + since)
			}
		}
		c.Rule, c.Bounds = boundsOf(c.SQL, f.Tag.Get("bounds"))
		columns = append(columns, c)
	}
	return columns
}

// boundsOf reads "RULE [LEAST,GREATEST]".
func boundsOf(column, tag string) (rule string, bounds []string) {
	open := strings.IndexAny(tag, "([")
	if open < 0 {
		return "", nil
	}
	last := len(tag) - 1
	least, greatest, _ := strings.Cut(tag[open+1:last], ",")
	above, below := column+" >= ", column+" <= "
	if tag[open] == '(' {
		above = column + " > "
	}
	if tag[last] == ')' {
		below = column + " < "
	}
	bounds = []string{above + least}
	if greatest != "" {
		bounds = append(bounds, below+greatest)
	}
	return strings.TrimSpace(tag[:open]), bounds
}

// Outside is the condition in SQL that a row is outside the bounds that are a part of a rule. A column that may be null
// is then within them: NOT (NULL >= 0) is not true.
func Outside(rule string) string {
	var outside []string
	for _, c := range Columns {
		if c.Rule == rule {
			outside = append(outside, c.outside())
		}
	}
	return strings.Join(outside, " OR ")
}

// OutsideElements is the condition that an element of a list is outside its bounds, or lacks a field.
func OutsideElements(elements string) string {
	i := slices.IndexFunc(lists, func(c Column) bool { return c.Elements == elements })
	var outside []string
	for _, f := range lists[i].Fields {
		outside = append(outside, f.outside())
	}
	return strings.Join(outside, " OR ")
}

func (c *Column) outside() string {
	within := strings.Join(c.Bounds, " AND ")
	switch {
	case !c.NotNull:
		return "NOT (" + within + ")"
	case c.Bounds == nil:
		return c.SQL + " IS NULL"
	}
	return c.SQL + " IS NULL OR NOT (" + within + ")"
}

// Elements are what the lists hold, such as levels.
func Elements() (names []string) {
	for _, c := range lists {
		if !slices.Contains(names, c.Elements) {
			names = append(names, c.Elements)
		}
	}
	return names
}

// Age is that of a file, by the columns that it has.
func Age(has func(column string) bool) int {
	age := Newest
	for _, c := range Columns {
		if c.Since > 0 && !has(c.Name) {
			age = min(age, c.Since-1)
		}
	}
	return age
}

// NoColumn is the error for a file without a column.
func NoColumn(quoted string) error {
	return fmt.Errorf("it has no column %s: it is another program's, or of another version", quoted)
}

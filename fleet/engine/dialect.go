package engine

import (
	"fmt"
	"strings"
)

// Dialect is how an engine writes that for which SQL has no common words. All but Types and the last two are formats.
type Dialect struct {
	// Types are the names of the types of columns that are no lists.
	Types map[Kind]string
	// FieldType is made of a field's name and type, ListType of those of all fields of an element.
	FieldType, ListType string
	// FieldValue is made of a field's name and value, ListValue of those of all fields and of the list, whose elements are
	// called l.
	FieldValue, ListValue string
	// Cast is made of a value and a type, Text and Milliseconds of a value.
	Cast, Text, Milliseconds string
	// Except leaves columns out, Explode makes a line of each element of a list.
	Except, Explode string
}

// each makes a text of each field, with a comma between.
func each(fields []Column, text func(Column) string) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = text(f)
	}
	return strings.Join(texts, ", ")
}

// typeOf is the type of a column in tables.
func (d *Dialect) typeOf(c Column) string {
	if c.Kind != List {
		return d.Types[c.Kind]
	}
	return fmt.Sprintf(d.ListType, each(c.Fields, func(f Column) string {
		return fmt.Sprintf(d.FieldType, f.SQL, d.typeOf(f))
	}))
}

// value is what a column of a file becomes in the table. The elements of a list are made of their fields by name: a
// cast of a list whose fields have other names gives nulls.
func (d *Dialect) value(c Column) string {
	in := "r." + c.Name
	switch c.Kind {
	case List:
		return fmt.Sprintf(d.ListValue, in, each(c.Fields, func(f Column) string {
			return fmt.Sprintf(d.FieldValue, f.SQL, fmt.Sprintf(d.Cast, "l."+f.Name, d.typeOf(f)))
		}))
	case Text:
		return fmt.Sprintf(d.Text, in)
	case Milliseconds:
		return fmt.Sprintf(d.Milliseconds, in)
	}
	return fmt.Sprintf(d.Cast, in, d.typeOf(c))
}

// Selected are the columns of the table, made of those of files r of an age. What these have not is null.
func (d *Dialect) Selected(age int) string {
	return each(Columns, func(c Column) string {
		if c.Since > age {
			return "CAST(NULL AS " + d.typeOf(c) + ") AS " + c.SQL
		}
		return d.value(c) + " AS " + c.SQL
	})
}

// Nothing has the columns of the table, and no row.
func (d *Dialect) Nothing() string {
	return fmt.Sprintf("SELECT CAST(NULL AS %s) AS file_no, CAST(NULL AS %s) AS file_row, %s WHERE FALSE",
		d.Types[Integer], d.Types[BigInt], d.Selected(-1))
}

// Lines has a line for each element of some lists of a table.
func (d *Dialect) Lines(elements, table string) string {
	names := each(lists, func(c Column) string { return c.SQL })
	var parts []string
	for _, c := range lists {
		if c.Elements != elements {
			continue
		}
		fields := each(c.Fields, func(f Column) string { return "element." + f.SQL + " AS " + f.SQL })
		parts = append(parts, fmt.Sprintf("SELECT * %s (%s, element), '%s' AS kind, %s "+
			"FROM (SELECT *, %s(%s) AS element FROM %s) t", d.Except, names, c.SQL, fields, d.Explode, c.SQL, table))
	}
	return strings.Join(parts, "\nUNION ALL\n")
}

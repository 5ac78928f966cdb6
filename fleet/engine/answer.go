package engine

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
)

// Each answers a question of the script: a line each becomes an R. A column is the field that has its name as a tag of
// JSON, or of the same name but for underscores and case. One without a field is an error.
func Each[R any](ctx context.Context, e Engine, question string, each func(R)) error {
	var fields [][]int
	return e.Ask(ctx, question, func(columns []string, scan func(...any) error) error {
		if fields == nil {
			var err error
			if fields, err = fieldsOf(reflect.TypeFor[R](), columns); err != nil {
				return err
			}
		}
		var line R
		to := make([]any, len(fields))
		for i, field := range fields {
			to[i] = reflect.ValueOf(&line).Elem().FieldByIndex(field).Addr().Interface()
		}
		if err := scan(to...); err != nil {
			return err
		}
		each(line)
		return nil
	})
}

// fieldsOf are the fields of columns.
func fieldsOf(line reflect.Type, columns []string) ([][]int, error) {
	named := map[string][]int{}
	for _, f := range reflect.VisibleFields(line) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		named[cmp.Or(name, strings.ToLower(f.Name))] = f.Index
	}
	fields := make([][]int, len(columns))
	for i, column := range columns {
		fields[i] = named[column]
		if fields[i] == nil {
			fields[i] = named[strings.ReplaceAll(column, "_", "")]
		}
		if fields[i] == nil {
			return nil, fmt.Errorf("its column %s has no field in %s", column, line)
		}
	}
	return fields, nil
}

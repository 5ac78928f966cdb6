package engine

import (
	"context"
	"fmt"
	"reflect"
	"strings"
)

// Each answers a question of the script: a line each becomes an R, whose fields have the names of columns as tags of
// JSON. A column without a field is an error.
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
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			named[name] = f.Index
		}
	}
	fields := make([][]int, len(columns))
	for i, column := range columns {
		if fields[i] = named[column]; fields[i] == nil {
			return nil, fmt.Errorf("its column %s has no field in %s", column, line)
		}
	}
	return fields, nil
}

package spark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/errgroup"

	"github.com/unthrottle/unthrottle/fleet/engine"
)

// description is what a file says of itself.
type description struct {
	rows int64
	age  int
	// schema is that of the columns that are read, in Spark's words.
	schema string
}

// described reads the descriptions of files, in their order; one of a file that cannot be read is an error.
func described(ctx context.Context, files []string) ([]description, []error) {
	descriptions, errs := make([]description, len(files)), make([]error, len(files))
	var readers errgroup.Group
	readers.SetLimit(2 * runtime.GOMAXPROCS(0)) // they wait for the disk
	for i := 0; i < len(files) && ctx.Err() == nil; i++ {
		readers.Go(func() error {
			descriptions[i], errs[i] = describe(files[i])
			return nil
		})
	}
	_ = readers.Wait() // none returns an error
	return descriptions, errs
}

// wild are the characters of patterns of files.
const wild = `*?[]{}\`

// describe reads the description of one file.
func describe(name string) (d description, err error) {
	// A file that is cut off or not Parquet makes the library panic in places.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return d, errors.New("its name is not UTF-8")
	}
	switch base := filepath.Base(name); {
	case base[0] == '.' || base[0] == '_':
		return d, fmt.Errorf("Spark leaves out files whose names begin with %q: without --on it counts", base[:1])
	case strings.Contains(base, ":"):
		return d, errors.New("Spark reads no file with a colon in its name: without --on it counts")
	case strings.Contains(name, ":") && strings.ContainsAny(name, wild):
		return d, errors.New("Spark finds no file whose path has a colon and one of " + wild + ": without --on it counts")
	}
	f, err := os.Open(name)
	if err != nil {
		return d, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return d, err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return d, err
	}
	d.rows = file.NumRows()
	fields := map[string]parquet.Field{}
	for _, f := range file.Root().Fields() {
		fields[f.Name()] = f
	}
	d.age = engine.Age(func(name string) bool { return fields[name] != nil })
	d.schema, err = schema(fields, d.age)
	return d, err
}

// schema are the types of the columns that are read, or an error that says which is missing or of another kind.
func schema(fields map[string]parquet.Field, age int) (string, error) {
	var columns []string
	for _, c := range engine.Columns {
		if c.Since > age {
			continue
		}
		f := fields[c.Name]
		if f == nil {
			return "", engine.NoColumn(strconv.Quote(c.Name))
		}
		is, err := typeIn(f, c)
		if err != nil {
			return "", err
		}
		columns = append(columns, c.Name+" "+is)
	}
	return strings.Join(columns, ", "), nil
}

// typeIn is the type in which a file has a column.
func typeIn(node parquet.Node, c engine.Column) (string, error) {
	wrong := fmt.Errorf("its column %q holds something else: it is another program's, or of another version", c.Name)
	if c.Kind != engine.List {
		if !node.Leaf() {
			return "", wrong
		}
		if is := leaf(node.Type(), c.Kind); is != "" {
			return is, nil
		}
		return "", wrong
	}
	for !node.Leaf() && len(node.Fields()) == 1 { // the levels of a list
		node = node.Fields()[0]
	}
	if node.Leaf() {
		return "", wrong
	}
	fields := map[string]parquet.Field{}
	for _, f := range node.Fields() {
		fields[f.Name()] = f
	}
	var elements []string
	for _, e := range c.Fields {
		f := fields[e.Name]
		if f == nil {
			return "", engine.NoColumn(strconv.Quote(c.Name + "." + e.Name))
		}
		is, err := typeIn(f, e)
		if err != nil {
			return "", wrong
		}
		elements = append(elements, e.Name+": "+is)
	}
	return "ARRAY<STRUCT<" + strings.Join(elements, ", ") + ">>", nil
}

// leaf is Spark's name of a type that can become a kind; "": it cannot.
func leaf(t parquet.Type, as engine.Kind) string {
	switch kind := t.Kind(); {
	case as == engine.Text && kind == parquet.ByteArray:
		return "STRING"
	case as == engine.Milliseconds && kind == parquet.Int64 && isTimestamp(t):
		return "TIMESTAMP"
	case as == engine.Text || as == engine.Milliseconds || isTimestamp(t):
	case kind == parquet.Int32:
		return "INT"
	case kind == parquet.Int64:
		return "BIGINT"
	case kind == parquet.Float:
		return "FLOAT"
	case kind == parquet.Double:
		return "DOUBLE"
	}
	return ""
}

func isTimestamp(t parquet.Type) bool {
	if logical := t.LogicalType(); logical != nil {
		_, ok := logical.Value.(*format.TimestampType)
		return ok
	}
	converted := t.ConvertedType()
	return converted != nil && (*converted == deprecated.TimestampMillis || *converted == deprecated.TimestampMicros)
}

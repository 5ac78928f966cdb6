package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/unthrottle/unthrottle/internal/demand"
)

// Hour is the file of one node's hour.
type Hour struct {
	File  string
	Began time.Time
	// Bytes and Changed are others once the file was replaced.
	Bytes   int64
	Changed time.Time
}

// Hours are the files of a node below a folder whose hours have begun, and ended after a moment; the oldest first. Damaged ones that
// were put aside are none of them. There is none if there is no folder; one that cannot be read is an error.
func Hours(dir string, names demand.Names, after, now time.Time) (hours []Hour, err error) {
	for _, folder := range []string{dir, filepath.Join(dir, clusterFolder(&demand.Row{Cluster: names.Cluster}))} {
		if _, err := os.ReadDir(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	files, err := filesOf(dir, names, now)
	for _, f := range files {
		if !f.ahead && !f.aside && f.began.Add(time.Hour).After(after) {
			hours = append(hours, Hour{f.name, f.began, f.bytes, f.changed})
		}
	}
	return hours, err
}

// Bounds of a file that is scanned: rows of demand.MaxContainers, twice each, need less.
const (
	mostScanned = 64 << 20
	mostRows    = 2 * demand.MaxContainers * int64(time.Hour/demand.SlotLength)
)

// batch is how many rows of a file are in memory at a time.
const batch = 256

// Scan hands the rows of one file to take, some at a time: they are gone when it returns. Of a file that is
// damaged or not of this program the error names it and says so, as [IsDamaged] tells; some of its rows may have been handed on.
func Scan(name string, take func([]demand.Row)) error {
	return opened(name, mostScanned, func(data *bytes.Reader) error {
		f, err := parquet.OpenFile(data, data.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		if err != nil {
			return err
		}
		if schema, _ := f.Lookup(schemaKey); schema != fmt.Sprint(demand.SchemaVersion) {
			return fmt.Errorf("its %s is %.20q, and this program reads %d: it is of another program or version", schemaKey, schema,
				demand.SchemaVersion)
		}
		if f.NumRows() > mostRows {
			return fmt.Errorf("%d rows: no hour of a node has so many", f.NumRows())
		}
		r := parquet.NewGenericReader[demand.Row](f)
		defer r.Close()
		for rows := make([]demand.Row, batch); ; clear(rows) {
			n, err := r.Read(rows)
			take(rows[:n])
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			case n == 0:
				return io.ErrUnexpectedEOF
			}
		}
	})
}

// IsDamaged tells whether an error is of a file whose content is no whole file of this program's rows. Others may pass.
func IsDamaged(err error) bool { return errors.As(err, new(*content)) }

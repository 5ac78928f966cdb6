// Package store keeps rows of package demand as Parquet files below a folder: cluster=C/date=D/hour=H/NODE.parquet.
//
// A file has one node's hour. It is written whole, beside its name, and then takes it, so that a reader and a kill see
// the file before or the file after. The rows of later slots are added to those that are there. A row that is there
// already, of the same cgroup and beginning, is replaced: what is written twice is there once.
//
// Engines that know Hive's partitions read the folder as one table (DuckDB, Spark, Trino).
package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/demand"
)

// Damaged is the error for a file whose content is no whole file of rows. It was moved aside, and the new rows were
// written.
type Damaged struct {
	File, Aside string
	Err         error
}

func (d *Damaged) Error() string {
	return fmt.Sprintf("%s is damaged (%v): it is now %s, and the rows of this hour before now are missing", d.File, d.Err,
		d.Aside)
}

// Unwrap is what is wrong with it.
func (d *Damaged) Unwrap() error { return d.Err }

// maxFile bounds the file that is read to be added to, in bytes.
const maxFile = 256 << 20

// Write adds rows to the files of a folder, which is made if it is not there. Errors of type *Damaged come joined with
// others; the rows are written all the same.
func Write(dir string, rows []demand.Row) error {
	files := map[string][]demand.Row{}
	for _, r := range rows {
		name := filepath.Join(dir, File(&r))
		files[name] = append(files[name], r)
	}
	var errs []error
	for name, rows := range files {
		errs = append(errs, add(name, rows))
	}
	return errors.Join(errs...)
}

// File is the file of a row, below the folder.
func File(r *demand.Row) string {
	start := r.Start.UTC()
	return filepath.Join(clusterFolder(r), "date="+start.Format(time.DateOnly), fmt.Sprintf("hour=%02d", start.Hour()),
		safe(r.Node)+".parquet")
}

// clusterFolder is the folder of a row's cluster.
func clusterFolder(r *demand.Row) string { return "cluster=" + safe(r.Cluster) }

// safe makes a name one that a folder can have.
func safe(name string) string {
	if name == "" {
		return "unknown"
	}
	if escaped := url.PathEscape(name); escaped != "." && escaped != ".." {
		return escaped[:min(len(escaped), 200)]
	}
	return "%2E"
}

// add adds rows to one file.
func add(name string, rows []demand.Row) error {
	old, err := Read(name)
	var damaged error
	switch wrong := new(content); {
	case errors.As(err, &wrong):
		aside, err := putAside(name)
		if err != nil {
			return errors.Join(wrong, err)
		}
		damaged = &Damaged{name, aside, wrong.err}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return errors.Join(damaged, write(name, merged(slices.Concat(old, rows))))
}

// mostAside bounds the files that are put aside of one node's hour.
const mostAside = 9

// asides are the names for damaged files NODE.parquet: NODE.parquet.damaged, NODE~2.parquet.damaged and so on.
func asides(name string) (names []string) {
	node := strings.TrimSuffix(name, ".parquet")
	for i := range mostAside {
		nth := ""
		if i > 0 {
			nth = fmt.Sprintf("~%d", i+1)
		}
		names = append(names, node+nth+".parquet.damaged")
	}
	return names
}

// putAside renames a damaged file to the first of these names that is free.
func putAside(name string) (aside string, err error) {
	for _, aside = range asides(name) {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(name, aside)
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%d damaged files of it are aside already: remove them, such as %s", mostAside, aside)
}

// merged leaves of rows of the same cgroup and beginning the last one, and puts a container's rows together: what does
// not change packs to nothing.
func merged(rows []demand.Row) []demand.Row {
	type id struct {
		node, name    string
		began, cgroup int64
	}
	idOf := func(r *demand.Row) id {
		return id{r.Node, r.Namespace + "/" + r.Pod + "/" + r.Container, r.Began.UnixMilli(), r.Cgroup}
	}
	newest := map[id]int{}
	for i := range rows {
		newest[idOf(&rows[i])] = i
	}
	kept := make([]demand.Row, 0, len(newest))
	for i := range rows {
		if newest[idOf(&rows[i])] == i {
			kept = append(kept, rows[i])
		}
	}
	slices.SortStableFunc(kept, func(a, b demand.Row) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pod, b.Pod),
			cmp.Compare(a.Container, b.Container), cmp.Compare(a.Cgroup, b.Cgroup),
			a.Start.Compare(b.Start))
	})
	return kept
}

func write(name string, rows []demand.Row, more ...parquet.WriterOption) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(name, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if err := Encode(f, rows, more...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// schemaKey is the key of a file's metadata that has the version of its columns.
const schemaKey = "unthrottle.schema"

// Encode writes rows as a file has them.
func Encode(to io.Writer, rows []demand.Row, more ...parquet.WriterOption) error {
	w := parquet.NewGenericWriter[demand.Row](to, append(more, parquet.Compression(&parquet.Zstd),
		parquet.KeyValueMetadata(schemaKey, fmt.Sprint(demand.SchemaVersion)))...)
	if _, err := w.Write(rows); err != nil {
		return err
	}
	return w.Close()
}

// Read reads the rows of one file. The error names the file; of one whose content is no file of rows it is a *content.
func Read(name string) (rows []demand.Row, err error) {
	err = opened(name, maxFile, func(data *bytes.Reader) (err error) {
		rows, err = parquet.Read[demand.Row](data, data.Size())
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// metadata is what a file's metadata have of a key; "": nothing.
func metadata(name, key string) (value string, err error) {
	err = opened(name, maxFile, func(data *bytes.Reader) error {
		f, err := parquet.OpenFile(data, data.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		if err == nil {
			value, _ = f.Lookup(key)
		}
		return err
	})
	return value, err
}

// content is the error for a file that was read, and is no whole file of rows.
type content struct {
	file string
	err  error
}

func (c *content) Error() string { return fmt.Sprintf("%s: damaged: %v", c.file, c.err) }

func (c *content) Unwrap() error { return c.err }

// opened reads a file of at most so many bytes and has it decoded. What cannot be read now, such as without rights, by a failing disk
// or with too many files open, is not damaged: it is read into memory first.
func opened(name string, most int64, decode func(*bytes.Reader) error) (err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would wait for who writes
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: it is no regular file: move it away", name)
	case info.Size() > most:
		return &content{name, fmt.Errorf("%d bytes: no file of rows is that large", info.Size())}
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return err
	}
	// A file that is cut off or not Parquet makes the library panic in places.
	defer func() {
		if p := recover(); p != nil {
			err = &content{name, fmt.Errorf("%v", p)}
		}
	}()
	if err := decode(bytes.NewReader(data)); err != nil {
		return &content{name, err}
	}
	return nil
}

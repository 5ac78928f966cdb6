// Package duckdb asks questions of a fleet's rows by DuckDB, in this process.
//
// # Problem
//
// A folder has files of many hosts and days. Some are cut off, are of another program, or lack a column, and DuckDB refuses a
// question on all of them for one that it cannot read. It also keeps to no bound of memory by itself.
//
// # Rule
//
// [DB.Prepare] copies the files' rows into a database of its own, in a folder that the caller makes and removes. It takes some files at once.
// Where they are refused it halves them until it has the files that are at fault; those are told, and the rest is loaded. Files of
// older programs, without the newer columns, are read without. Questions
// are plain SQL on the tables that they name: what only DuckDB knows, such as nested lists, is in this package alone.
//
// # Limits
//
// A page within a file that was changed on the disk and can still be unpacked is not noticed here; rows that cannot be are found by
// the report's own rules. DuckDB does not find a file whose path has both a backslash and one of * ? [: it is told as one that
// cannot be read.
package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	_ "github.com/duckdb/duckdb-go/v2" // the driver

	"github.com/unthrottle/unthrottle/fleet/engine"
)

// filesAtOnce is how many files one statement reads. Each statement waits for the disk once.
const filesAtOnce = 1024

// file is one with its number.
type file struct {
	no   int
	name string
}

// DB is a database for one report.
type DB struct {
	db *sql.DB
	// Batch is how many files one statement reads; 0: filesAtOnce. Tests set it.
	Batch     int
	questions map[string]string
}

// Open makes a database in a folder. memoryMB bounds what DuckDB holds in memory; what is more goes to the folder.
func Open(ctx context.Context, dir string, memoryMB int) (*DB, error) {
	db, err := sql.Open("duckdb", filepath.Join(dir, "rows.duckdb"))
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	d := &DB{db: db}
	for _, setting := range []string{
		fmt.Sprintf("SET memory_limit = '%dMB'", memoryMB),
		"SET temp_directory = " + quoted(filepath.Join(dir, "spilled")),
		"SET autoinstall_known_extensions = false", // nothing is fetched
		"SET preserve_insertion_order = false",
		loaded,
	} {
		if _, err := db.ExecContext(ctx, setting); err != nil {
			return nil, errors.Join(fmt.Errorf("DuckDB: %w", err), d.Close())
		}
	}
	return d, nil
}

// Close ends the database.
func (d *DB) Close() error { return d.db.Close() }

// types are DuckDB's names of what columns hold; those of lists are made of their fields.
var types = map[engine.Kind]string{engine.Integer: "INTEGER", engine.BigInt: "BIGINT", engine.Double: "DOUBLE", engine.Text: "VARCHAR", engine.Milliseconds: "BIGINT"}

func typeOf(is engine.Kind) string {
	fields := is.Fields()
	if fields == nil {
		return types[is]
	}
	var of []string
	for _, f := range fields {
		of = append(of, f.Becomes+" "+types[f.Is])
	}
	return "STRUCT(" + strings.Join(of, ", ") + ")[]"
}

// value is what a column becomes. Elements of lists by the names of their fields, since a cast of a list whose fields have other names gives
// nulls, for all files at once.
func value(c engine.Column) string {
	if fields := c.Is.Fields(); fields != nil {
		var of []string
		for _, f := range fields {
			of = append(of, fmt.Sprintf("'%s': CAST(l.%s AS %s)", f.Becomes, f.Name, types[f.Is]))
		}
		return "[{" + strings.Join(of, ", ") + "} FOR l IN r." + c.Name + "]"
	}
	switch c.Is {
	case engine.Text:
		return "coalesce(CAST(r." + c.Name + " AS VARCHAR), '')"
	case engine.Milliseconds:
		return "epoch_ms(CAST(r." + c.Name + " AS TIMESTAMPTZ))"
	}
	return "CAST(r." + c.Name + " AS " + types[c.Is] + ")"
}

// loaded makes the table of all rows, with a number of the container that made gives later.
var loaded = func() string {
	var of strings.Builder
	of.WriteString("CREATE TABLE loaded (file_no INTEGER, file_row BIGINT")
	for _, c := range engine.Columns {
		fmt.Fprintf(&of, ", %s %s", c.Becomes, typeOf(c.Is))
	}
	return of.String() + ", container_no BIGINT)"
}()

// read is the statement that reads some files, which have so many generations of columns.
func read(files []file, age int) string {
	lack := engine.Lack(age)
	var of strings.Builder
	of.WriteString("INSERT INTO loaded SELECT f.file_no, r.file_row_number")
	for _, c := range engine.Columns {
		if slices.Contains(lack, c.Name) {
			fmt.Fprintf(&of, ", CAST(NULL AS %s)", typeOf(c.Is))
			continue
		}
		of.WriteString(", " + value(c))
	}
	of.WriteString(", NULL")
	of.WriteString(" FROM read_parquet([")
	for i, f := range files {
		if i > 0 {
			of.WriteString(", ")
		}
		of.WriteString(quoted(literal.Replace(f.name)))
	}
	of.WriteString("], filename = true, file_row_number = true, hive_partitioning = false) r JOIN (VALUES ")
	for i, f := range files {
		if i > 0 {
			of.WriteString(", ")
		}
		fmt.Fprintf(&of, "(%d, %s)", f.no, quoted(f.name))
	}
	of.WriteString(") f(file_no, name) ON f.name = r.filename")
	return of.String()
}

// literal makes a pattern of a name that matches that name alone.
var literal = strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]")

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Prepare reads files and makes the tables of a script. An error of type *Full says that this machine has no room.
func (d *DB) Prepare(ctx context.Context, files []string, s engine.Script) ([]engine.Refused, error) {
	refused, err := d.loadAll(ctx, files)
	if err != nil {
		return refused, err
	}
	for _, t := range s.Tables {
		for _, statement := range made(t) {
			if _, err := d.db.ExecContext(ctx, statement); err != nil {
				return refused, failed(t.Name, err)
			}
		}
	}
	d.questions = map[string]string{}
	for _, q := range s.Questions {
		d.questions[q.Name] = q.SQL
	}
	return refused, nil
}

// made are the statements that make a table. A row's number is written beside it: to copy the rows, with their lists, takes twenty times as
// long, and as much room as they have.
func made(t engine.Table) []string {
	switch {
	case t.List != 0:
		return []string{"CREATE VIEW " + t.Name + " AS " + lines(t.List, t.Of)}
	case t.Numbered != "":
		return []string{
			"UPDATE " + t.Of + " SET container_no = n.container_no FROM " + t.Numbered + " n WHERE n.file_no = " + t.Of + ".file_no AND n.file_row = " + t.Of + ".file_row",
			"CREATE VIEW " + t.Name + " AS SELECT * FROM " + t.Of + " WHERE container_no IS NOT NULL",
		}
	}
	return []string{"CREATE TABLE " + t.Name + " AS " + t.SQL}
}

// lines has a line for each element of the lists of a kind in a table.
func lines(list engine.Kind, of string) string {
	var parts, fields []string
	for _, name := range list.Lists() {
		parts = append(parts, "SELECT *, '"+name+"' AS kind, unnest("+name+") AS element FROM "+of)
	}
	for _, f := range list.Fields() {
		fields = append(fields, "element."+f.Becomes+" AS "+f.Becomes)
	}
	lists := append(engine.Lists(), "element")
	return "SELECT * EXCLUDE (" + strings.Join(lists, ", ") + "), " + strings.Join(fields, ", ") + " FROM (" + strings.Join(parts, " UNION ALL ") + ")"
}

// loadAll reads the rows of files.
func (d *DB) loadAll(ctx context.Context, files []string) (refused []engine.Refused, err error) {
	at := d.Batch
	if at == 0 {
		at = filesAtOnce
	}
	for no := 0; no < len(files); no += at {
		batch := files[no:min(no+at, len(files))]
		var sound []file
		for i, name := range batch {
			if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
				refused = append(refused, engine.Refused{File: name, Err: errors.New("its name is not UTF-8")})
				continue
			}
			sound = append(sound, file{no + i, name})
		}
		bad, err := d.load(ctx, sound, engine.Newest)
		refused = append(refused, bad...)
		if err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// load reads files with so many generations of columns, or finds by halves those that cannot be read.
func (d *DB) load(ctx context.Context, files []file, age int) ([]engine.Refused, error) {
	if len(files) == 0 {
		return nil, nil
	}
	_, err := d.db.ExecContext(ctx, read(files, age))
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if _, dead := d.db.ExecContext(ctx, "SELECT 1"); dead != nil {
		return nil, fmt.Errorf("DuckDB gave up at one of %d files from %s on (%w): move these aside and ask again", len(files), files[0].name, err)
	}
	if full(err) {
		return nil, &Full{err}
	}
	if slices.ContainsFunc(engine.Later(age), func(name string) bool { return strings.Contains(err.Error(), `"`+name+`"`) }) {
		// Of a file whose columns cannot be read the statement for it alone says why.
		if ages, known := d.ages(ctx, files, age); known {
			var refused []engine.Refused
			for of, some := range ages {
				bad, err := d.load(ctx, some, of)
				if refused = append(refused, bad...); err != nil {
					return refused, err
				}
			}
			return refused, nil
		}
	}
	if len(files) == 1 {
		return []engine.Refused{{File: files[0].name, Err: why(err)}}, nil
	}
	first, err := d.load(ctx, files[:len(files)/2], age)
	if err != nil {
		return first, err
	}
	rest, err := d.load(ctx, files[len(files)/2:], age)
	return append(first, rest...), err
}

// ages parts files by how many generations of columns they have, up to age. known is false where their columns cannot be read, and where
// none is older than age.
func (d *DB) ages(ctx context.Context, files []file, age int) (ages [][]file, known bool) {
	var names []string
	for _, f := range files {
		names = append(names, quoted(literal.Replace(f.name)))
	}
	has := map[string][]string{}
	err := d.lines(ctx, "SELECT file_name, name FROM parquet_schema(["+strings.Join(names, ", ")+"]) WHERE name IN ('"+strings.Join(engine.Lack(0), "', '")+"')",
		func(scan func(...any) error) error {
			var file, column string
			err := scan(&file, &column)
			has[file] = append(has[file], column)
			return err
		})
	if err != nil {
		return nil, false
	}
	ages = make([][]file, age+1)
	for _, f := range files {
		of := min(age, engine.Age(func(name string) bool { return slices.Contains(has[f.name], name) }))
		ages[of] = append(ages[of], f)
	}
	return ages, len(ages[age]) < len(files)
}

// why is DuckDB's reason without what it says of the statement.
func why(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	if _, column, ok := strings.Cut(first, "does not have a column named "); ok {
		return engine.NoColumn(column)
	}
	return errors.New(first)
}

// Full is the error where this machine has no room for the rows.
type Full struct{ Err error }

func (f *Full) Error() string {
	return fmt.Sprintf("DuckDB has no room: %v; TMPDIR names another place, --memory gives more", f.Err)
}

// Unwrap is what DuckDB says.
func (f *Full) Unwrap() error { return f.Err }

// full reports whether an error is about this machine and not about a file.
func full(err error) bool {
	return slices.ContainsFunc([]string{"Out of Memory", "No space left", "max_temp_directory_size", "Too many open files"},
		func(says string) bool { return strings.Contains(err.Error(), says) })
}

// failed is the error of a table or a question.
func failed(name string, err error) error {
	if full(err) {
		err = &Full{err}
	}
	return fmt.Errorf("DuckDB: %s: %w", name, err)
}

// Ask answers a question line by line.
func (d *DB) Ask(ctx context.Context, name string, line func(scan func(...any) error) error) error {
	question, ok := d.questions[name]
	if !ok {
		return fmt.Errorf("DuckDB: no question %s", name)
	}
	if err := d.lines(ctx, question, line); err != nil {
		return failed(name, err)
	}
	return nil
}

func (d *DB) lines(ctx context.Context, statement string, line func(scan func(...any) error) error) error {
	rows, err := d.db.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := line(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

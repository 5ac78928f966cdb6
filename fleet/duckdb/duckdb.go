// Package duckdb asks questions of a fleet's rows by DuckDB, in this process.
//
// # Problem
//
// A folder has files of many hosts and days. Some are cut off, are of another program, or lack a column, and DuckDB
// refuses a question on all of them for one that it cannot read. It also keeps to no bound of memory by itself.
//
// # Rule
//
// [DB.Prepare] copies the files' rows into a database of its own, in a folder that the caller makes and removes. It
// takes some files at once. Where they are refused it halves them until it has the files that are at fault; those are
// told, and the rest is loaded. Files of older programs, without the newer columns, are read without. Questions are
// plain SQL on the tables that they name: what only DuckDB knows, such as nested lists, is in this package alone.
//
// # Limits
//
// A page within a file that was changed on the disk and can still be unpacked is not noticed here; rows that cannot be
// are found by the report's own rules. DuckDB does not find a file whose path has both a backslash and one of * ? [: it
// is told as one that cannot be read.
package duckdb

import (
	"cmp"
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
		// with a number of the container, that Prepare gives
		"CREATE TABLE loaded AS SELECT *, CAST(NULL AS BIGINT) AS container_no FROM (" + dialect.Nothing() + ")",
	} {
		if _, err := db.ExecContext(ctx, setting); err != nil {
			return nil, errors.Join(fmt.Errorf("DuckDB: %w", err), d.Close())
		}
	}
	return d, nil
}

// Close ends the database.
func (d *DB) Close() error { return d.db.Close() }

// dialect is DuckDB's.
var dialect = engine.Dialect{
	Types: map[engine.Kind]string{
		engine.Integer: "INTEGER", engine.BigInt: "BIGINT", engine.Double: "DOUBLE", engine.Text: "VARCHAR",
		engine.Milliseconds: "BIGINT",
	},
	FieldType: "%s %s", ListType: "STRUCT(%s)[]",
	FieldValue: "'%s': %s", ListValue: "[{%[2]s} FOR l IN %[1]s]",
	Cast: "CAST(%s AS %s)", Text: "coalesce(CAST(%s AS VARCHAR), '')", Milliseconds: "epoch_ms(CAST(%s AS TIMESTAMPTZ))",
	Except: "EXCLUDE", Explode: "unnest",
}

// read is the statement that reads files of an age.
func read(files []file, age int) string {
	numbers := make([]string, len(files))
	for i, f := range files {
		numbers[i] = fmt.Sprintf("(%d, %s)", f.no, quoted(f.name))
	}
	return "INSERT INTO loaded SELECT f.file_no, r.file_row_number, " + dialect.Selected(age) +
		", NULL FROM read_parquet(" + patterns(files) +
		", filename = true, file_row_number = true, hive_partitioning = false) r JOIN (VALUES " +
		strings.Join(numbers, ", ") +
		") f(file_no, name) ON f.name = r.filename"
}

// patterns is the list of files as DuckDB's functions take it.
func patterns(files []file) string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = quoted(literal.Replace(f.name))
	}
	return "[" + strings.Join(names, ", ") + "]"
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

// made are the statements that make a table. A row's number is written beside it: to copy the rows, with their lists,
// takes twenty times as long, and as much room as they have.
func made(t engine.Table) []string {
	switch {
	case t.Elements != "":
		return []string{"CREATE VIEW " + t.Name + " AS " + dialect.Lines(t.Elements, t.Of)}
	case t.Numbered != "":
		return []string{
			"UPDATE " + t.Of + " SET container_no = n.container_no FROM " + t.Numbered + " n WHERE n.file_no = " + t.Of +
				".file_no AND n.file_row = " + t.Of + ".file_row",
			"CREATE VIEW " + t.Name + " AS SELECT * FROM " + t.Of + " WHERE container_no IS NOT NULL",
		}
	}
	return []string{"CREATE TABLE " + t.Name + " AS " + t.SQL}
}

// loadAll reads the rows of files.
func (d *DB) loadAll(ctx context.Context, files []string) (refused []engine.Refused, err error) {
	size := cmp.Or(d.Batch, filesAtOnce)
	for no := 0; no < len(files); no += size {
		batch := files[no:min(no+size, len(files))]
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
		return nil, fmt.Errorf("DuckDB gave up at one of %d files from %s on (%w): move these aside and ask again",
			len(files), files[0].name, err)
	}
	if full(err) {
		return nil, &Full{err}
	}
	if slices.ContainsFunc(engine.Columns, func(c engine.Column) bool {
		return c.Since > 0 && c.Since <= age && strings.Contains(err.Error(), `"`+c.Name+`"`)
	}) {
		// Of a file whose columns cannot be read the statement for it alone says why.
		if ages, known := d.ages(ctx, files, age); known {
			var refused []engine.Refused
			for age, some := range ages {
				bad, err := d.load(ctx, some, age)
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

// ages parts files by their age, up to one. known is false where their columns cannot be read, and where all have that
// age.
func (d *DB) ages(ctx context.Context, files []file, age int) (ages [][]file, known bool) {
	has := map[[2]string]bool{}
	err := d.lines(ctx, "SELECT DISTINCT file_name, name FROM parquet_schema("+patterns(files)+")",
		func(_ []string, scan func(...any) error) error {
			var column [2]string
			err := scan(&column[0], &column[1])
			has[column] = true
			return err
		})
	if err != nil {
		return nil, false
	}
	ages = make([][]file, age+1)
	for _, f := range files {
		its := min(age, engine.Age(func(name string) bool { return has[[2]string{f.name, name}] }))
		ages[its] = append(ages[its], f)
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
	return slices.ContainsFunc([]string{"Out of Memory", "No space left", "max_temp_directory_size",
		"Too many open files"},
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
func (d *DB) Ask(ctx context.Context, name string, line func(columns []string, scan func(...any) error) error) error {
	question, ok := d.questions[name]
	if !ok {
		return fmt.Errorf("DuckDB: no question %s", name)
	}
	if err := d.lines(ctx, question, line); err != nil {
		return failed(name, err)
	}
	return nil
}

func (d *DB) lines(ctx context.Context, statement string,
	line func(columns []string, scan func(...any) error) error) error {
	rows, err := d.db.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := line(columns, rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Package duckdb asks questions of a fleet's rows by DuckDB, in this process.
//
// # Problem
//
// A folder has files of many hosts and days. Some are cut off, are of another program, or lack a column, and DuckDB refuses a
// question on all of them for one that it cannot read. It also keeps to no bound of memory by itself.
//
// # Rule
//
// [DB.Load] copies the files' rows into a database of its own, in a temporary folder that Close removes. It takes some files at once.
// Where they are refused it halves them until it has the files that are at fault; those are told, and the rest is loaded. Files of
// older programs, without the newer columns, are read without. Questions
// are plain SQL on the tables that they name: what only DuckDB knows, such as nested lists, is in this package alone.
//
// # Limits
//
// A page within a file that was changed on the disk and can still be unpacked is not noticed here; rows that cannot be are found by
// the report's own rules.
package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	_ "github.com/duckdb/duckdb-go/v2" // the driver
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
	db  *sql.DB
	dir string
	// Batch is how many files one statement reads; 0: filesAtOnce. Tests set it.
	Batch int
}

// Refused is a file whose rows could not be read, and why.
type Refused struct {
	File string
	Err  error
}

// Open makes a database. memoryMB bounds what DuckDB holds in memory; what is more goes to the temporary folder.
func Open(ctx context.Context, memoryMB int) (*DB, error) {
	dir, err := os.MkdirTemp("", "unthrottle-fleet-")
	if err != nil {
		return nil, fmt.Errorf("a folder for the database: %w; TMPDIR names another place", err)
	}
	db, err := sql.Open("duckdb", filepath.Join(dir, "rows.duckdb"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open DuckDB: %w", err), os.RemoveAll(dir))
	}
	d := &DB{db: db, dir: dir}
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

// Close ends the database and removes its folder.
func (d *DB) Close() error { return errors.Join(d.db.Close(), os.RemoveAll(d.dir)) }

// column is one that is read: its name in the files, in the database, and what it becomes.
type column struct{ name, becomes, as string }

// generations are the columns that came later, in their order: files of older programs have only the first generations, or none. What they
// have not is null there.
var generations = [][]string{
	{"period_microseconds", "candidate_seconds", "candidate_from", "candidates"},
	{"host_cpus", "host_memory_bytes", "memory_bytes"},
}

// columns are those of docs/reference/fleet-rows.md that the report asks of, in the order of the table.
var columns = []column{
	{"schema", "schema_version", "INTEGER"}, {"start", "start_ms", "BIGINT"}, {"began", "began_ms", "BIGINT"}, {"seconds", "seconds", "DOUBLE"},
	{"samples", "samples", "INTEGER"}, {"cluster", "cluster", "VARCHAR"}, {"node", "node", "VARCHAR"}, {"namespace", "namespace", "VARCHAR"},
	{"pod", "pod", "VARCHAR"}, {"container", "container", "VARCHAR"}, {"service", "service", "VARCHAR"}, {"cgroup", "cgroup", "BIGINT"},
	{"limit_cpus", "limit_cpus", "DOUBLE"}, {"own_limit_cpus", "own_limit_cpus", "DOUBLE"}, {"request_cpus", "request_cpus", "DOUBLE"},
	{"allowed_cpus", "allowed_cpus", "INTEGER"}, {"used_cpu_seconds", "used_cpu_seconds", "DOUBLE"}, {"wanted_cpu_seconds", "wanted_cpu_seconds", "DOUBLE"},
	{"stopped_low_seconds", "stopped_low_seconds", "DOUBLE"}, {"stopped_high_seconds", "stopped_high_seconds", "DOUBLE"},
	{"throttled_own_seconds", "throttled_own_seconds", "DOUBLE"}, {"throttled_pod_seconds", "throttled_pod_seconds", "DOUBLE"},
	{"throttled_slice_seconds", "throttled_slice_seconds", "DOUBLE"}, {"throttled_inside_seconds", "throttled_inside_seconds", "DOUBLE"},
	{"remedy", "remedy", "VARCHAR"}, {"width", "width", levels}, {"wanted", "wanted", levels},
	{"period_microseconds", "period_us", "BIGINT"}, {"candidate_seconds", "candidate_seconds", "DOUBLE"}, {"candidate_from", "candidate_from", "INTEGER"},
	{"candidates", "candidates", candidates}, {"runtime", "runtime", "VARCHAR"},
	{"host_cpus", "host_cpus", "INTEGER"}, {"host_memory_bytes", "host_memory_bytes", "BIGINT"}, {"memory_bytes", "memory_bytes", "BIGINT"},
}

const (
	levels     = "STRUCT(cpus INTEGER, microseconds BIGINT)[]"
	candidates = "STRUCT(step INTEGER, stopped_us BIGINT, throttled BIGINT, delay_us BIGINT, burst_stopped_us BIGINT, burst_delay_us BIGINT)[]"
)

// fields are those of the lists: by their names, since a cast of a list whose fields have other names gives nulls, for all files at once.
var fields = map[string]string{
	levels: "[{'cpus': CAST(l.cpus AS INTEGER), 'microseconds': CAST(l.microseconds AS BIGINT)} FOR l IN r.%s]",
	candidates: "[{'step': CAST(l.step AS INTEGER), 'stopped_us': CAST(l.stopped_microseconds AS BIGINT), 'throttled': CAST(l.throttled_periods AS BIGINT), " +
		"'delay_us': CAST(l.delay_microseconds AS BIGINT), 'burst_stopped_us': CAST(l.burst_stopped_microseconds AS BIGINT), " +
		"'burst_delay_us': CAST(l.burst_delay_microseconds AS BIGINT)} FOR l IN r.%s]",
}

// loaded makes the table of all rows.
var loaded = func() string {
	var of strings.Builder
	of.WriteString("CREATE TABLE loaded (file_no INTEGER, file_row BIGINT")
	for _, c := range columns {
		fmt.Fprintf(&of, ", %s %s", c.becomes, c.as)
	}
	return of.String() + ")"
}()

// read is the statement that reads some files, which have so many generations of columns.
func read(files []file, age int) string {
	lack := slices.Concat(generations[age:]...)
	var of strings.Builder
	of.WriteString("INSERT INTO loaded SELECT f.file_no, r.file_row_number")
	for _, c := range columns {
		if slices.Contains(lack, c.name) {
			fmt.Fprintf(&of, ", CAST(NULL AS %s)", c.as)
			continue
		}
		switch c.as {
		case levels, candidates:
			fmt.Fprintf(&of, ", "+fields[c.as], c.name)
		case "VARCHAR":
			fmt.Fprintf(&of, ", coalesce(CAST(r.%s AS VARCHAR), '')", c.name)
		case "BIGINT":
			if strings.HasSuffix(c.becomes, "_ms") {
				fmt.Fprintf(&of, ", epoch_ms(CAST(r.%s AS TIMESTAMPTZ))", c.name)
				continue
			}
			fallthrough
		default:
			fmt.Fprintf(&of, ", CAST(r.%s AS %s)", c.name, c.as)
		}
	}
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

// Load reads the rows of files, whose number is their place in the list. Their names are absolute. Files that cannot be read come
// back; an error means that the database itself failed.
func (d *DB) Load(ctx context.Context, files []string) (refused []Refused, err error) {
	at := d.Batch
	if at == 0 {
		at = filesAtOnce
	}
	for no := 0; no < len(files); no += at {
		batch := files[no:min(no+at, len(files))]
		var sound []file
		for i, name := range batch {
			if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
				refused = append(refused, Refused{name, errors.New("its name is not UTF-8")})
				continue
			}
			sound = append(sound, file{no + i, name})
		}
		bad, err := d.load(ctx, sound, len(generations))
		refused = append(refused, bad...)
		if err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// load reads files with so many generations of columns, or finds by halves those that cannot be read.
func (d *DB) load(ctx context.Context, files []file, age int) ([]Refused, error) {
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
		return nil, fmt.Errorf("DuckDB has no room: %w; TMPDIR names another place, --memory gives more", err)
	}
	if slices.ContainsFunc(slices.Concat(generations[:age]...), func(name string) bool { return strings.Contains(err.Error(), `"`+name+`"`) }) {
		// Of a file whose columns cannot be read the statement for it alone says why.
		if ages, known := d.ages(ctx, files, age); known {
			var refused []Refused
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
		return []Refused{{files[0].name, why(err)}}, nil
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
	err := d.Ask(ctx, "SELECT file_name, name FROM parquet_schema(["+strings.Join(names, ", ")+"]) WHERE name IN ('"+strings.Join(slices.Concat(generations...), "', '")+"')",
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
		of := 0
		for of < age && !slices.ContainsFunc(generations[of], func(name string) bool { return !slices.Contains(has[f.name], name) }) {
			of++
		}
		ages[of] = append(ages[of], f)
	}
	return ages, len(ages[age]) < len(files)
}

// why is DuckDB's reason without what it says of the statement.
func why(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	if _, column, ok := strings.Cut(first, "does not have a column named "); ok {
		return fmt.Errorf("it has no column %s: it is another program's, or of another version", column)
	}
	return errors.New(first)
}

// full reports whether an error is about this machine and not about a file.
func full(err error) bool {
	s := err.Error()
	return strings.Contains(s, "Out of Memory") || strings.Contains(s, "No space left") || strings.Contains(s, "max_temp_directory_size")
}

// Keep makes a table of a question's answer.
func (d *DB) Keep(ctx context.Context, name, question string) error {
	return d.exec(ctx, name, "CREATE TABLE "+name+" AS "+question)
}

// Levels makes a view of the histograms in a table: a line for each level, with kind (width, wanted), cpus and microseconds beside
// the table's other columns.
func (d *DB) Levels(ctx context.Context, name, of string) error {
	part := func(kind string) string {
		return "SELECT *, '" + kind + "' AS kind, unnest(" + kind + ") AS level FROM " + of
	}
	return d.exec(ctx, name, "CREATE VIEW "+name+" AS SELECT * EXCLUDE (width, wanted, candidates, level), level.cpus AS cpus, level.microseconds AS microseconds FROM ("+
		part("width")+" UNION ALL "+part("wanted")+")")
}

// Candidates makes a view of what other limits would have done in a table: a line for each limit, with its step and figures beside the
// table's other columns.
func (d *DB) Candidates(ctx context.Context, name, of string) error {
	return d.exec(ctx, name, "CREATE VIEW "+name+" AS SELECT * EXCLUDE (width, wanted, candidates, candidate), candidate.step AS step, candidate.stopped_us AS stopped_us, "+
		"candidate.throttled AS throttled, candidate.delay_us AS delay_us, candidate.burst_stopped_us AS burst_stopped_us, candidate.burst_delay_us AS burst_delay_us "+
		"FROM (SELECT *, unnest(candidates) AS candidate FROM "+of+")")
}

func (d *DB) exec(ctx context.Context, name, statement string) error {
	if _, err := d.db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("DuckDB: %s: %w", name, err)
	}
	return nil
}

// Ask answers a question line by line.
func (d *DB) Ask(ctx context.Context, question string, line func(scan func(...any) error) error) error {
	rows, err := d.db.QueryContext(ctx, question)
	if err != nil {
		return fmt.Errorf("DuckDB: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := line(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

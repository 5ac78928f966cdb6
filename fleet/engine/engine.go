// Package engine is what a fleet's questions need of a program that holds its rows.
//
// # Problem
//
// The report's questions are SQL that every engine runs as it is. What engines do each in a way of their own is to read
// files with columns of several ages, and to make lines of the lists in a row.
//
// # Rule
//
// A [Script] names the tables and the questions. An [Engine] reads files into a table "loaded" of the [Columns], with
// file_no (a file's place in the list) and file_row beside them, makes the tables, and answers. The columns are the
// fields of demand.Row, by their tags. A [Dialect] has what engines write differently. Package duckdb answers when it
// is asked, in this process; package spark answers all questions in one run of other processes.
package engine

import "context"

// Engine answers the questions of a script.
type Engine interface {
	// Prepare reads files, whose names are absolute, and makes the tables of a script in their order. Files that cannot be
	// read come back; an error is about the engine.
	Prepare(ctx context.Context, files []string, s Script) ([]Refused, error)
	// Ask answers a question of the script line by line; see [Each]. scan sets what its arguments point to, one for each
	// column, as that of database/sql does.
	Ask(ctx context.Context, name string, line func(columns []string, scan func(...any) error) error) error
}

// Refused is a file whose rows could not be read, and why.
type Refused struct {
	File string
	Err  error
}

// Script is what is asked: tables in their order, and questions about them.
type Script struct {
	Tables    []Table
	Questions []Question
}

// Question is one in SQL.
type Question struct{ Name, SQL string }

// Table is one of three. With SQL it is the answer to a question, which is kept. With Elements it has a line for each
// element of such lists in the table Of, such as levels: the columns of the table, those of the element, and kind,
// which is the list's name. With Numbered it has the rows of the table Of, which is "loaded", that the table Numbered
// has by file_no and file_row, with its container_no beside.
type Table struct {
	Name     string
	SQL      string
	Elements string
	Of       string
	Numbered string
}

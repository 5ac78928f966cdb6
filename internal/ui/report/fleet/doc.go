// Package fleet shows what `unthrottle fleet report` found in the rows of many hosts: as text, as JSON, as a page
// and as files of Parquet; and what `unthrottle fleet
// plan` would move, as text and JSON.
//
// # Rule
//
// The text has the ledger first, then the services that save most, those with the most runnable threads per reserved
// core, and those that are stopped most; then what remedies did, what is not known, and what of the files was left out.
// A table has [most] lines, and says how many more there are; JSON has all.
//
// # Limits
//
// The names are strangers': they are made safe here, in the text and on the page.
package fleet

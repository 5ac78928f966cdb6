// Package journal keeps on disk what every changed setting was and what we wrote, before it is written.
package journal

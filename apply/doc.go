// Package apply carries out a list of changes as one transaction that can be taken back, whatever happens between.
package apply

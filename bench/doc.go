// Package bench has below it the studies behind the pages of docs/results: each measures on real hosts, keeps records here, and
// writes its page from them. They are a module of their own, so that neither the program nor its tests know of them. What product
// and studies share is in internal/load, internal/sim/agreement and test/study.
package bench

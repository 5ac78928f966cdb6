package bench

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each file of records in the tree has a test that its page reads all of it. A new one is named here with its own.
func TestEachFileOfRecordsIsRead(t *testing.T) {
	readers := map[string]string{
		"accuracy/conceptual.json":   "TestPublishedFigures",
		"agent/runs.json":            "TestThePageIsOfItsRuns",
		"many/records.jsonl.gz":      "TestPageIsOfTheRecords",
		"rivals/records.jsonl.gz":    "TestPageIsOfTheRecords",
		"rivals/shards.jsonl.gz":     "TestSizesPageIsOfTheRecords",
		"secondary/records.jsonl.gz": "TestPageIsOfTheRecords",
		"rivals/sizes.jsonl.gz":      "TestSizesPageIsOfTheRecords",
		"rollout/records.jsonl.gz":   "TestPageIsOfTheRecords",
		"threads/records.jsonl.gz":   "TestThePageHasEachVariant",
		"truth/first.jsonl.gz":       "TestEachRecordIsOnAPage",
		"truth/results.jsonl.gz":     "TestEachRecordIsOnAPage",
		"truth/sampled.jsonl.gz":     "TestEachRecordIsOnAPage",
		"wide/records.jsonl.gz":      "TestEachRecordIsRead",
	}
	found := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".gz", ".json", ".jsonl"}, filepath.Ext(path)) {
			return err
		}
		if strings.Contains(path, "/files/") { // what services are given
			return nil
		}
		found++
		tests, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*_test.go"))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(tests, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && readers[path] != "" && strings.Contains(string(text), "func "+readers[path]+"(")
		}) {
			t.Errorf("bench/%s: no test that a page reads each of its records; write one, and name it here", path)
		}
		return nil
	})
	if err != nil || found != len(readers) {
		t.Errorf("%d files of records, %d are named: %v", found, len(readers), err)
	}
}

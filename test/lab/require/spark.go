package require

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Spark needs Apache Spark and a Java for it. It returns the command spark-submit.
func Spark(t testing.TB) (submit string) {
	t.Helper()
	need{name: needSpark, runsIn: "a host with Java, by make spark"}.ask(t, func() (err error) {
		submit, err = findSpark()
		return err
	})
	return submit
}

func findSpark() (string, error) {
	name := "spark-submit"
	if home := os.Getenv("SPARK_HOME"); home != "" {
		name = filepath.Join(home, "bin", name)
	}
	submit, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	java := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", java)
	}
	if _, err := exec.LookPath(java); err != nil {
		return "", fmt.Errorf("the Java that Spark needs: %w", err)
	}
	return submit, nil
}

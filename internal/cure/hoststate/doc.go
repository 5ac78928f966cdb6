// Package hoststate holds the state of a host as values: what every plan rests on. It is pure; package gather reads it.
//
// Problem: a plan has to be reproducible. A planner that reads files itself sees a different host at every read, and a
// test of it needs a kernel.
//
// Rule: [Facts] is one reading of the host. Planners take it, and read nothing else.
//
// Worked example: on two cgroups /a and /a/web with 4 CPUs, Facts has Groups["/a/web"] with the limit of web, Sets["/a"]
// with the CPUs 0-3, one Container, and no transaction in Held.
//
// Limits: the files of a running host change while they are read. Facts.At says when the reading began.
package hoststate

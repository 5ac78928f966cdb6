// Package top is the live view: all containers, the one that was stopped most
// first, with the cause and the last seconds of each, and the way into one
// explanation.
//
// [Model] is a pure value: keys and [Frame] values come in, a screen goes out.
// [Run] is the thin edge that joins it to a terminal and to the host.
package top

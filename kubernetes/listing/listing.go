// Package listing lists objects of an API server page by page.
//
// A token that continues a list expires within minutes (etcd's compaction), and the API server then answers 410 Gone: the list begins
// anew, a few times. Nothing is done with an object before all pages are read.
package listing

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const (
	// pageLength bounds the objects of one answer.
	pageLength = 500
	// mostLists is how often objects are listed from the beginning.
	mostLists = 3
)

// Gather lists objects, and returns what keep makes of those that it keeps: nil is none. An error of keep ends it. More than most
// objects are an error; 0: there may be any number.
func Gather[T any](ctx context.Context, of dynamic.ResourceInterface, most int, keep func(*unstructured.Unstructured) (*T, error)) (
	all []T, err error) {
	lists, seen := 1, 0
	for more := ""; ; {
		list, err := of.List(ctx, metav1.ListOptions{Limit: pageLength, Continue: more})
		if apierrors.IsResourceExpired(err) && more != "" && lists < mostLists {
			all, seen, more, lists = nil, 0, "", lists+1
			continue
		}
		if err != nil {
			return nil, err
		}
		if seen += len(list.Items); most > 0 && seen > most {
			return nil, fmt.Errorf("there are more than %d", most)
		}
		for i := range list.Items {
			kept, err := keep(&list.Items[i])
			if err != nil {
				return nil, err
			}
			if kept != nil {
				all = append(all, *kept)
			}
		}
		if more = list.GetContinue(); more == "" {
			return all, nil
		}
	}
}

package source

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzPagesOfAnyServerAreOneList: each byte is a page: how many items it has, and whether the
// token has expired.
func FuzzPagesOfAnyServerAreOneList(f *testing.F) {
	f.Add([]byte{3, 2, 1}, int64(2))
	f.Add([]byte{1, 128, 2, 3}, int64(0))
	f.Add([]byte{}, int64(-1))
	f.Fuzz(func(t *testing.T, script []byte, limit int64) {
		at, page := 0, 0
		var want, got []string
		list := func(_ context.Context, o metav1.ListOptions, put func(runtime.Object) error) (m metav1.ListMeta, err error) {
			if o.Continue == "" {
				want, page = nil, 0
			} else if o.Continue != "page "+string(rune('a'+page)) || o.ResourceVersion != "" {
				t.Fatalf("it continues with %q at %q", o.Continue, o.ResourceVersion)
			}
			if at >= len(script) {
				return metav1.ListMeta{ResourceVersion: "9"}, nil
			}
			step := script[at]
			at++
			if step >= 128 && o.Continue != "" {
				return m, apierrors.NewResourceExpired("too old")
			}
			if step >= 250 {
				return m, errors.New("broken")
			}
			for range step % 4 {
				one := &metav1.PartialObjectMetadata{}
				one.Name = string(rune('a' + len(want)))
				want = append(want, one.Name)
				if err := put(one); err != nil {
					return m, err
				}
			}
			page = (page + 1) % 26
			return metav1.ListMeta{ResourceVersion: "9", Continue: "page " + string(rune('a'+page))}, nil
		}
		first := metav1.ListOptions{Limit: limit, ResourceVersion: "7"}
		rv, err := Pages(t.Context(), list, first, func() func(runtime.Object) error {
			got = nil
			return func(item runtime.Object) error {
				got = append(got, item.(*metav1.PartialObjectMetadata).Name)
				return nil
			}
		})
		if err == nil && (rv != "9" || !slices.Equal(got, want)) {
			t.Fatalf("%v: %v at %q, want %v", script, got, rv, want)
		}
	})
}

package kates_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// pagesOf watches n config maps of so many bytes each, and returns the sizes of the pages that were
// asked for.
func pagesOf[S any](t *testing.T, n, bytes int, size int64, faults ...func(*katestest.Faults)) (limits []string) {
	t.Helper()
	objects := make([]kates.Object, n)
	for i := range objects {
		objects[i] = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("m%05d", i)},
			Data:       map[string]string{"text": strings.Repeat("x", bytes)},
		}
	}
	server, wire := katestest.NewServer(t, katestest.WithObjects(objects...)), katestest.NewFaults(t, 1)
	for _, fault := range faults {
		fault(wire)
	}
	config := rest.CopyConfig(server.Config)
	config.Wrap(wire.Wrap)
	c, err := kates.NewClientFromRESTConfig(config, kates.Tuning{Lists: kates.PagedLists, PageSize: size})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble's clock
	defer cancel()
	snapshots, err := kates.Watch[S](ctx, c)
	require.NoError(t, err)
	for _, err := range snapshots.All(ctx) {
		require.NoError(t, err)
		break
	}
	for _, r := range wire.Requests(katestest.Match{Verb: "list", Resource: "configmaps"}) {
		limits = append(limits, r.Query.Get("limit"))
	}
	return limits
}

func TestPagesHaveAboutFourMiBWhateverTheForm(t *testing.T) {
	synctest.Test(t, pagesOfAnyForm) // a page that comes slowly is followed by smaller ones
}

func pagesOfAnyForm(t *testing.T) {
	type typed struct{ Maps []*corev1.ConfigMap }
	type untyped struct {
		Maps []*kates.Unstructured `kates:"configmaps"`
	}
	type metadata struct {
		Maps []*kates.PartialObjectMetadata `kates:"configmaps"`
	}
	assert.Len(t, pagesOf[typed](t, 1200, 1<<10, 0), 2, "500, and the rest")
	assert.Len(t, pagesOf[untyped](t, 1200, 1<<10, 0), 2, "500, and the rest")
	assert.Len(t, pagesOf[metadata](t, 1200, 40<<10, 0), 2, "of the objects only the metadata come")
	large := pagesOf[typed](t, 900, 20<<10, 0)
	assert.Equal(t, []string{"500", "200"}, large[:2], "two pages of about 4 MiB are left")
	assert.Len(t, large, 3)
	assert.Equal(t, []string{"500", "500", "500"}, pagesOf[typed](t, 1200, 1<<10, 500), "a size that somebody has chosen stays")
}

// TestG1AListOfWhichALargePageNeverComesHasSmallPagesThen: a proxy, or a slow way, cuts what is
// longer than a page of 500.
func TestG1AListOfWhichALargePageNeverComesHasSmallPagesThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type typed struct{ Maps []*corev1.ConfigMap }
		cut := func(wire *katestest.Faults) {
			wire.On(katestest.Match{Verb: "list", Resource: "configmaps", Where: func(r katestest.Request) bool {
				n, _ := strconv.Atoi(r.Query.Get("limit"))
				return n > 500
			}}).Cut(10_000)
		}
		limits := pagesOf[typed](t, 1200, 1<<10, 0, cut)
		require.Len(t, limits, 5)
		assert.Equal(t, []string{"500", "500", "500"}, limits[2:], "after %v", limits[:2])
	})
}

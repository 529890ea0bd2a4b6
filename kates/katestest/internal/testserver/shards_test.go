package testserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/base/shardrange"
)

// firstOf are four config maps, and the share of the first of them.
func (s tested) firstOf() (names []string, share shardrange.Shard) {
	s.Helper()
	for i := range 4 {
		names = append(names, fmt.Sprint("c", i))
		hash := shardrange.Hash(s.made(configMaps, names[i], ""))
		if i == 0 {
			share = shardrange.Shard{Field: shardrange.UID, Ranges: shardrange.Ranges{{First: hash, Last: hash}}}
		}
	}
	return names, share
}

func namesOf(list *unstructured.Unstructured) (names []string) {
	_ = list.EachListItem(func(o runtime.Object) error {
		names = append(names, o.(*unstructured.Unstructured).GetName())
		return nil
	})
	return names
}

func TestAShareOfAListIsSentWhereTheServerShards(t *testing.T) {
	inBubble(t, func(s tested) {
		names, share := s.firstOf()
		asked := configMaps + "?shardSelector=" + url.QueryEscape(share.String())
		list := s.do(http.MethodGet, asked, "")
		assert.Equal(t, names, namesOf(list), "a server without the feature gate ignores it")
		assert.NotContains(t, list.Object["metadata"], "shardInfo")

		s.ServeShards()
		list = s.do(http.MethodGet, asked, "")
		assert.Equal(t, names[:1], namesOf(list))
		says, _, err := unstructured.NestedString(list.Object, "metadata", "shardInfo", "selector")
		require.NoError(t, err)
		assert.Equal(t, share.String(), says)
		assert.Equal(t, names, namesOf(s.do(http.MethodGet, configMaps, "")))

		code, status := s.ask(http.MethodGet, configMaps+"?shardSelector=x", "")
		assert.Equal(t, http.StatusInternalServerError, code)
		assert.Contains(t, status.Object["message"], "invalid shard selector")
	})
}

func TestListsOfCustomKindsAndOfMetadataDoNotSayThatTheyAreShares(t *testing.T) {
	inBubble(t, func(s tested) {
		_, share := s.firstOf()
		s.ServeShards()
		s.define("things", "Thing", "{name: v1, served: true, storage: true, "+anything+"}")
		s.settle()
		query := "?shardSelector=" + url.QueryEscape(share.String())
		list := s.do(http.MethodGet, "/apis/example.com/v1/things"+query, "")
		assert.NotContains(t, list.Object["metadata"], "shardInfo")

		r := httptest.NewRequest(http.MethodGet, configMaps+query, nil)
		r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Contains(t, w.Body.String(), "PartialObjectMetadataList")
		assert.NotContains(t, w.Body.String(), "shardInfo")
	})
}

func TestAWatchOfAShareHasItsObjectsAlone(t *testing.T) {
	inBubble(t, func(s tested) {
		names, share := s.firstOf()
		s.ServeShards()
		query := "timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&shardSelector=" +
			url.QueryEscape(share.String())
		all, _ := s.events(query)
		assert.Equal(t, []any{"ADDED", "BOOKMARK"}, kindsOfEvents(all))
		assert.Equal(t, names[0], all[0].GetName())
	})
}

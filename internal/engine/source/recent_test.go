package source

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestG2RecentEventsAreCompleteWithTheNewestVersionANewerEventOrABookmark(t *testing.T) {
	type event struct {
		is watch.EventType
		rv string
	}
	for name, c := range map[string]struct {
		events          []event
		sound, complete bool
		lastRV          string
	}{
		"an event before":             {[]event{{watch.Modified, "12"}}, true, false, "12"},
		"the event of the version":    {[]event{{watch.Added, "12"}, {watch.Deleted, "15"}}, true, true, "15"},
		"a newer event":               {[]event{{watch.Added, "12"}, {watch.Modified, "16"}}, true, true, "12"},
		"a bookmark":                  {[]event{{watch.Added, "12"}, {watch.Bookmark, "15"}}, true, true, "12"},
		"an old bookmark":             {[]event{{watch.Bookmark, "9"}}, true, false, "10"},
		"an event that says no time":  {[]event{{watch.Added, "12"}, {watch.Deleted, "12"}}, false, false, "12"},
		"an event without a version":  {[]event{{watch.Added, ""}}, false, false, "10"},
		"an event of an unknown type": {[]event{{"WHAT", "12"}}, false, false, "10"},
		"the server's error":          {[]event{{watch.Error, "12"}}, false, false, "10"},
	} {
		t.Run(name, func(t *testing.T) {
			r, sound := recentEvents{Recent: Recent{RV: "15", LastRV: "10"}}, true
			for _, e := range c.events {
				sound = r.addEvent(watch.Event{Type: e.is, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: e.rv}}})
			}
			assert.Equal(t, c.sound, sound)
			assert.Equal(t, c.complete, r.complete)
			assert.Equal(t, c.lastRV, r.LastRV)
		})
	}
}

func TestRecentEventsAreCompleteWhenTheCallersOwnWatchHasGotAsFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		news, positions := make(chan struct{}, 1), []string{"12", "15"}
		r := recentEvents{Recent: Recent{RV: "15", LastRV: "10"}, news: news, positionRV: func() string {
			now := positions[0]
			positions = positions[1:]
			return now
		}}
		news <- struct{}{}
		assert.True(t, r.read(t.Context(), &Watch{Interface: watch.NewFake()}))
		assert.True(t, r.complete)
	})
}

package kates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOfSeveralTuningsTheLastValueOfEachFieldCounts(t *testing.T) {
	s, err := newSettings("", []Option{
		Tuning{Linger: time.Hour, Lists: StreamedLists, UntypedStreams: true, KindPoll: time.Second, IdleTimeout: time.Second},
		Tuning{PageSize: 7, Linger: time.Minute, CompressedLists: true, PendingWrites: 5, MaxObjectBytes: 9},
	})
	require.NoError(t, err)
	assert.Equal(t, time.Minute, s.streams.Grace)
	assert.Equal(t, int64(7), s.streams.PageSize)
	assert.Equal(t, 5, s.streams.PendingMax)
	assert.Equal(t, time.Second, s.streams.KindPoll)
	assert.Equal(t, time.Second, s.streams.IdleTimeout)
	assert.Equal(t, int64(9), s.maxObjectBytes)
	assert.True(t, s.streams.StreamLists && s.streamLists && s.untyped && s.compressed)
	s, err = newSettings("", []Option{Tuning{Lists: PagedLists}, Tuning{}})
	require.NoError(t, err)
	assert.False(t, s.streams.StreamLists || s.streamLists)
	s, err = newSettings("", nil)
	require.NoError(t, err)
	assert.True(t, s.streams.StreamLists && !s.streamLists, "automatic")
}

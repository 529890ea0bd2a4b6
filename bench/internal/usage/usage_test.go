package usage

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePeakIsReadFromTheProcess(t *testing.T) {
	peak, err := parsePeak([]byte("Name:\tx\nVmHWM:\t   12345 kB\nVmRSS:\t 99 kB\n"))
	require.NoError(t, err)
	assert.Equal(t, 12345.0*1024, peak)
	_, err = parsePeak([]byte("Name:\tx\n"))
	require.Error(t, err)
	_, err = parsePeak([]byte("VmHWM: lots kB\n"))
	require.Error(t, err)
}

func TestWhatTheProcessUsesIsAboveZero(t *testing.T) {
	for _, measure := range []func() (float64, error){CPUSeconds, PeakBytes} {
		v, err := measure()
		require.NoError(t, err)
		assert.Positive(t, v)
	}
	assert.Positive(t, LiveBytes())
	assert.Positive(t, AllocatedBytes())
	if runtime.GOOS == "linux" {
		assert.Positive(t, ResidentBytes())
	}
	for _, measure := range []func() float64{WaitedSeconds, LoadAverage} {
		assert.GreaterOrEqual(t, measure(), 0.0, "of an idle machine it is zero")
	}
}

func TestAProfileIsTwoFiles(t *testing.T) {
	var p Profile
	require.ErrorContains(t, p.End(), "none was started")
	path := filepath.Join(t.TempDir(), "p")
	require.Error(t, p.Start(filepath.Join(path, "no", "folder")))
	require.NoError(t, p.Start(path))
	require.ErrorContains(t, p.Start(path), "one is under way")
	require.NoError(t, p.End())
	for _, name := range []string{path + ".cpu", path + ".heap"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Positive(t, info.Size())
	}
}

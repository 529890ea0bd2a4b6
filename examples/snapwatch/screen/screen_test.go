package screen_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/examples/snapwatch/model"
	"github.com/kates-go/kates/examples/snapwatch/screen"
)

var update = flag.Bool("update", false, "write the golden files")

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// picture is a watch of six kinds, of which each is in another state.
func picture() model.Picture {
	m := model.New("services", "deployments", "pods", "secrets", "hosts", "jobs")
	forbidden := `secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "prod"`
	samples := []model.Sample{
		{State: "synced", Events: 10},
		{State: "synced", Events: 10},
		{State: "retrying", Error: "watch pods: connection reset by peer", Lag: 90 * time.Second, Events: 50},
		{State: "forbidden", Absent: true, Error: forbidden},
		{State: "missing", Absent: true, Error: `the server doesn't have a resource type "hosts"`},
		{State: "listing", Listed: 4500},
	}
	m.Sample(start, samples)
	m.Snapshot(start, []int{12, 4, 300, -1, -1, -1}, nil)
	samples[2].Events, samples[2].Coalesced = 120, 64
	m.Sample(start.Add(time.Second), samples)
	var changes []model.Change
	for i := range 3 {
		changes = append(changes, model.Change{Type: model.Added, Kind: 2, Namespace: "prod", Name: fmt.Sprint("web-", i)})
	}
	changes = append(changes, model.Change{Type: model.Updated, Kind: 1, Namespace: "prod", Name: "web"},
		model.Change{Type: model.Deleted, Kind: 2, Namespace: "prod", Name: "web-old"})
	m.Snapshot(start.Add(time.Second), []int{12, 4, 302, -1, -1, -1}, changes)
	return m.Picture(start.Add(4 * time.Second))
}

// more is a picture with n more changes of pods.
func more(p model.Picture, n int) model.Picture {
	p.Number++
	p.Shown = p.At
	var newer []model.Change
	for i := range n {
		newer = append(newer, model.Change{
			At: p.At, Snapshot: p.Number, Type: model.Updated, Kind: 2, Namespace: "prod", Name: fmt.Sprint("new-", i),
		})
	}
	p.Changes = append(newer, p.Changes...)
	return p
}

func newScreen(width, height int) *screen.Screen {
	s := screen.New(screen.Options{Where: "blue  namespace prod"})
	s.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

// press sends keys, and returns the last command.
func press(s *screen.Screen, keys ...string) (cmd tea.Cmd) {
	for _, key := range keys {
		msg := tea.KeyPressMsg{Text: key, Code: []rune(key)[0]}
		switch key {
		case "tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab}
		case "shift+tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "end":
			msg = tea.KeyPressMsg{Code: tea.KeyEnd}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "space":
			msg = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		case "ctrl+c":
			msg = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		}
		_, cmd = s.Update(msg)
	}
	return cmd
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got+"\n"), 0o644))
	}
	wanted, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(wanted), got+"\n")
}

func TestTheScreenShowsStatesCountsAndChanges(t *testing.T) {
	s := newScreen(100, 24)
	golden(t, "empty", s.Text())
	s.Update(screen.Frame{Picture: picture()})
	golden(t, "wide", s.Text())
	press(s, "tab", "tab", "tab", "tab")
	golden(t, "forbidden", s.Text())
	press(s, "esc", "?")
	golden(t, "help", s.Text())
	press(s, "?")
	s.Update(tea.WindowSizeMsg{Width: 46, Height: 18})
	golden(t, "narrow", s.Text())
}

func TestTheScreenFitsAnyTerminal(t *testing.T) {
	s := newScreen(100, 24)
	s.Update(screen.Frame{Picture: picture()})
	s.Page = "http://127.0.0.1:8080/debug/kates"
	for _, keys := range []string{"", "tab", "?"} {
		if keys != "" {
			press(s, keys)
		}
		for width := 0; width < 130; width += 11 {
			for height := 0; height < 32; height += 3 {
				s.Update(tea.WindowSizeMsg{Width: width, Height: height})
				lines := strings.Split(s.Text(), "\n")
				require.LessOrEqual(t, len(lines), max(1, height), "%d×%d", width, height)
				for _, line := range lines {
					require.LessOrEqual(t, ansi.StringWidth(line), max(1, width), "%d×%d: %q", width, height, line)
				}
			}
		}
	}
}

func TestManyKindsDoNotPushTheChangesOff(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("kind%02d", i))
	}
	m := model.New(names...)
	m.Snapshot(start, make([]int, 40), nil)
	m.Snapshot(start, make([]int, 40), []model.Change{{Type: model.Added, Name: "first"}})
	s := newScreen(80, 24)
	s.Update(screen.Frame{Picture: m.Picture(start)})
	assert.Contains(t, s.Text(), "more kinds")
	assert.Contains(t, s.Text(), "kind00  first")
	for i := range 40 {
		press(s, "tab")
		assert.Contains(t, s.Text(), fmt.Sprintf("> kind%02d", i), "the chosen kind is seen")
	}
}

func TestTheListOfOneKindHasItsChangesAlone(t *testing.T) {
	s := newScreen(80, 24)
	s.Update(screen.Frame{Picture: picture()})
	assert.Contains(t, s.Text(), "prod/web-old")
	press(s, "tab", "tab") // deployments
	assert.Contains(t, s.Text(), "CHANGES of deployments")
	assert.NotContains(t, s.Text(), "prod/web-old")
	press(s, "shift+tab", "shift+tab")
	assert.Contains(t, s.Text(), "prod/web-old")
}

func TestAPauseKeepsThePictureUntilItEnds(t *testing.T) {
	s := newScreen(80, 24)
	s.Update(screen.Frame{Picture: picture()})
	before := s.Text()
	press(s, "space")
	s.Update(screen.Frame{Picture: more(picture(), 3)})
	header, rest, _ := strings.Cut(s.Text(), "\n")
	_, wanted, _ := strings.Cut(before, "\n")
	assert.Equal(t, wanted, rest)
	assert.Contains(t, header, "snapshot 2, 3s ago  PAUSED")
	assert.NotContains(t, s.Text(), "new-0")
	press(s, "space")
	assert.Contains(t, s.Text(), "new-0")
}

func TestAScrolledListStaysWhereItIs(t *testing.T) {
	s := newScreen(80, 24)
	p := more(picture(), 30)
	s.Update(screen.Frame{Picture: p})
	press(s, "down", "down", "down")
	assert.Contains(t, s.Text(), "3 newer above")
	s.Update(screen.Frame{Picture: more(p, 5)})
	assert.Contains(t, s.Text(), "8 newer above")
	press(s, "end")
	assert.Contains(t, s.Text(), "prod/web-old", "the oldest is in sight")
	press(s, "up", "g")
	assert.NotContains(t, s.Text(), "newer above")
}

func TestKeysEndTheScreen(t *testing.T) {
	s := newScreen(80, 24)
	assert.Equal(t, tea.Quit(), press(s, "q")())
	assert.False(t, s.Interrupted)
	assert.Equal(t, tea.Quit(), press(s, "ctrl+c")())
	assert.True(t, s.Interrupted)
	_, cmd := s.Update(screen.Failed{Err: os.ErrClosed})
	assert.Equal(t, tea.Quit(), cmd())
	assert.Equal(t, os.ErrClosed, s.Err)
}

func TestColoursSayNothingThatTheTextDoesNot(t *testing.T) {
	plain, colored := newScreen(100, 24), newScreen(100, 24)
	colored.Color = true
	for _, s := range []*screen.Screen{plain, colored} {
		s.Update(screen.Frame{Picture: picture()})
	}
	assert.NotContains(t, plain.Text(), "\x1b")
	assert.Contains(t, colored.Text(), "\x1b[31mforbidden\x1b[0m")
	assert.Equal(t, plain.Text(), ansi.Strip(colored.Text()))
}

func TestAKindThatWaitsForOthersHasItsObjects(t *testing.T) {
	m := model.New("services", "pods")
	m.Sample(start, []model.Sample{{State: "synced", Held: 12}, {State: "listing", Listed: 4500}})
	s := newScreen(80, 24)
	s.Update(screen.Frame{Picture: m.Picture(start)})
	assert.Regexp(t, `services +synced +12 `, s.Text())
	assert.Regexp(t, `pods +listing +4500… `, s.Text())
	assert.Contains(t, s.Text(), "waiting for the first snapshot")
}

func TestTheTextOfAServerDoesNotReachTheTerminalAsItIs(t *testing.T) {
	m := model.New("pods")
	m.Sample(start, []model.Sample{{State: "retrying", Error: "no\x1b[2J\x07 answer"}})
	s := newScreen(80, 24)
	s.Update(screen.Frame{Picture: m.Picture(start)})
	assert.NotContains(t, s.Text(), "\x1b")
	assert.NotContains(t, s.Text(), "\x07")
}

func TestTheEndOfAReplayIsSaid(t *testing.T) {
	s := newScreen(80, 24)
	s.Update(screen.Frame{Picture: picture(), Over: true})
	assert.Contains(t, s.Text(), "THE REPLAY IS OVER")
	s.Update(screen.Frame{Picture: picture()})
	assert.Contains(t, s.Text(), "THE REPLAY IS OVER")
}

// Package screen is the full-screen view of snapwatch. It is a model of bubbletea: messages go in,
// a text comes out, so that tests need no terminal.
//
// It is bubbletea and not tview. In November 2026 bubbletea had a release in the month before
// (v2.1.1, 28 October 2026), several a year, and a company behind it. The last one of tview
// (v0.42.0) was of August 2025, and it has one maintainer. Bubbletea's view is a text, which is
// what the tests compare.
//
// [Screen] is the type to start from.
package screen

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/kates-go/kates/examples/snapwatch/model"
)

// Frame is the message with the newest picture.
type Frame struct {
	Picture model.Picture
	// Over: nothing follows, since the replay has been played.
	Over bool
}

// Failed is the message that the watch has ended.
type Failed struct{ Err error }

// Options are what does not change.
type Options struct {
	// Where says which cluster and which objects it is about.
	Where string
	// Page is the address of the status page; empty without one.
	Page string
	// Color: signs and states have colours. They say the same without.
	Color bool
}

// Screen is the view.
type Screen struct {
	Options
	// Err is why the watch has ended. Interrupted: somebody has pressed ctrl-C.
	Err         error
	Interrupted bool

	latest, frozen model.Picture
	paused, over   bool
	help           bool
	width, height  int
	// kind is the index of the chosen one, below 0 for all.
	kind int
	// scroll is how many changes are above the list, and rows how many were in it when it was last
	// drawn.
	scroll, rows int
}

// New returns a screen of a usual size; the terminal tells its own.
func New(o Options) *Screen { return &Screen{Options: o, width: 80, height: 24, kind: -1} }

// Init does nothing.
func (s *Screen) Init() tea.Cmd { return nil }

// Update takes a message.
func (s *Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case Frame:
		s.frame(msg)
	case Failed:
		s.Err = msg.Err
		return s, tea.Quit
	case tea.KeyPressMsg:
		return s, s.key(msg.String())
	}
	s.bound()
	return s, nil
}

// frame takes the newest picture. A list that is scrolled stays where it is.
func (s *Screen) frame(f Frame) {
	if !s.paused && s.scroll > 0 {
		for _, c := range f.Picture.Changes {
			if c.Snapshot > s.latest.Number && s.shows(c) {
				s.scroll++
			}
		}
	}
	s.latest, s.over = f.Picture, s.over || f.Over
}

// key does what a key is for.
func (s *Screen) key(key string) tea.Cmd {
	switch key {
	case "q":
		return tea.Quit
	case "ctrl+c":
		s.Interrupted = true
		return tea.Quit
	case "?", "h":
		s.help = !s.help
	case "esc":
		s.help, s.kind, s.scroll = false, -1, 0
	case "space", "p":
		s.paused, s.frozen = !s.paused, s.latest
	case "tab", "right", "l":
		s.choose(1)
	case "shift+tab", "left":
		s.choose(-1)
	case "down", "j":
		s.scroll++
	case "up", "k":
		s.scroll--
	case "pgdown", "ctrl+d":
		s.scroll += max(1, s.height/2)
	case "pgup", "ctrl+u":
		s.scroll -= max(1, s.height/2)
	case "home", "g":
		s.scroll = 0
	case "end", "G":
		s.scroll = model.Most
	}
	s.bound()
	return nil
}

// choose goes to the next kind, or back to all.
func (s *Screen) choose(step int) {
	n := len(s.picture().Kinds) + 1
	s.kind = (s.kind+1+step+n)%n - 1
	s.scroll = 0
}

// bound keeps the list within what there is.
func (s *Screen) bound() {
	s.scroll = max(0, min(s.scroll, len(s.changes())-max(1, s.rows)))
}

// picture is what is shown: the newest one, or that of the pause.
func (s *Screen) picture() model.Picture {
	if s.paused {
		return s.frozen
	}
	return s.latest
}

func (s *Screen) shows(c model.Change) bool { return s.kind < 0 || c.Kind == s.kind }

// changes are those of the chosen kind, the newest first.
func (s *Screen) changes() (all []model.Change) {
	for _, c := range s.picture().Changes {
		if s.shows(c) {
			all = append(all, c)
		}
	}
	return all
}

// View is the screen for bubbletea.
func (s *Screen) View() tea.View {
	v := tea.NewView(s.Text())
	v.AltScreen = true
	v.WindowTitle = fmt.Sprintf("snapwatch %s", s.Where)
	return v
}

package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	screenshots = flag.String("screenshots", "", "write the pictures of docs/status-page.md into this folder")
	churn       = flag.Duration("churn", 0, "how long others write before the pictures are taken")
)

// TestThePicturesOfTheDocumentationCanBeTaken takes them, and keeps them with -screenshots. For
// these, -churn 127s gives the timelines something to show, and a half-open watch time to be
// noticed.
func TestThePicturesOfTheDocumentationCanBeTaken(t *testing.T) {
	interval, tuning := time.Duration(0), kates.Tuning{}
	if *churn > 0 {
		interval = time.Second                  // as programs have it
		tuning.IdleTimeout = *churn + time.Hour // on a slow machine, too, the watch stays half-open
	}
	p, b := runAt(t, interval, tuning), open(t)
	folder := *screenshots
	if folder == "" {
		folder = t.TempDir()
	}
	b.do(chromedp.EmulateViewport(1100, 820), chromedp.Navigate(p.url), chromedp.WaitVisible("#main"))
	p.halfOpen(t)
	for began, n := time.Now(), 0; time.Since(began) < *churn; n++ {
		burst := 1
		if time.Since(began)%(20*time.Second) > 12*time.Second {
			burst = 40
		}
		for range burst {
			p.set(t, fmt.Sprintf("settings-%03d", n%250), fmt.Sprint(n))
			n++
		}
		time.Sleep(100 * time.Millisecond) // load for the pictures
	}
	shots := []struct {
		name, page, from string // the element at the top
		width, height    int64
		dark             bool
	}{
		{"status-overview", "", "body", 1100, 900, false},
		{"status-timeline", "queries", "figure", 1100, 340, true},
		{"status-staleness", "streams", "figure", 1100, 300, false},
		{"status-object", "object?query=Deployments&namespace=shop&name=cart", "main", 1100, 620, false},
		{"status-phone", "", "body", 390, 844, true},
	}
	for _, shot := range shots {
		scheme := "light"
		if shot.dark {
			scheme = "dark"
		}
		command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		size := []chromedp.EmulateViewportOption{}
		if shot.width < 500 {
			size = append(size, chromedp.EmulateMobile)
		}
		b.do(chromedp.EmulateViewport(shot.width, shot.height, size...), chromedp.Navigate(p.url+shot.page), chromedp.WaitVisible("#main"))
		eval[bool](b, fmt.Sprintf(`(document.querySelector(%q).scrollIntoView(), true)`, shot.from))
		picture := get(b, chromedp.CaptureScreenshot())
		require.NotEmpty(t, picture)
		require.NoError(t, os.WriteFile(filepath.Join(folder, shot.name+".png"), picture, 0o644))
	}
}

// halfOpen has the watch of deployments bring nothing any more, and the program write one.
func (p *program) halfOpen(t *testing.T) {
	t.Helper()
	watches := katestest.Match{Verb: "watch", Resource: "deployments.apps"}
	require.NoError(t, p.faults.Wait(t.Context(), func() bool { return len(p.faults.Open(watches)) > 0 }))
	p.faults.Now(watches).Stall(0)
	require.NoError(t, p.client.Update(t.Context(), deployment("cart", 5), nil))
}

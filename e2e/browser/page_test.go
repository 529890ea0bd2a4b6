package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestABrowserShowsEveryPageWithoutAComplaintAndWithoutASecret(t *testing.T) {
	p, b := run(t), open(t)
	b.do(chromedp.Navigate(p.url), chromedp.WaitVisible("#main"))
	for _, cause := range []string{"forbidden", "missing-kind", "invalid", "derive-invalid"} {
		b.until(`[...document.querySelectorAll(".problem code")].some(c => c.textContent === "` + cause + `")`)
	}
	todo := append(eval[[]string](b, `[...document.querySelectorAll("nav a")].map(a => a.href)`),
		p.url+"objects?query=Secrets", p.url+"object?query=Secrets&namespace=shop&name=database",
		p.url+"derived?graph=passwords&node=password&key=shop/database", p.url+"objects?query=Widgets&invalid=1", p.url+"object?query=Widgets&namespace=shop&name=broken")
	require.Greater(t, len(todo), 10)
	for _, address := range todo {
		b.do(chromedp.Navigate(address), chromedp.WaitVisible("#main"))
		assert.Equal(t, 1, eval[int](b, `document.querySelectorAll("h1").length`), address)
		assert.NotContains(t, eval[string](b, `document.documentElement.outerHTML`), password)
		assert.False(t, eval[bool](b, `document.styleSheets.length === 0 || document.styleSheets[0].cssRules.length === 0`), "no style on %s", address)
		assert.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth - innerWidth`), 0, "%s is wider than the window", address)
	}
	b.do(chromedp.Navigate(p.url+"object?query=Secrets&namespace=shop&name=database"), chromedp.WaitVisible("#main"))
	b.until(`document.body.textContent.includes("(hidden)")`)
}

func TestAPageRefreshesItselfAndKeepsTheFocus(t *testing.T) {
	p, b := run(t), open(t)
	b.do(chromedp.Navigate(p.url+"snapshots"), chromedp.WaitVisible("summary"))
	eval[bool](b, `document.querySelector("nav a").focus(); window.here = document.activeElement; document.querySelector("details").open = true`)
	before := eval[int](b, `document.querySelectorAll("tbody tr").length`)
	p.set(t, "settings-107", "1")
	b.until(`document.querySelector("tbody").textContent.includes("settings-107")`)
	assert.Greater(t, eval[int](b, `document.querySelectorAll("tbody tr").length`), before)
	assert.True(t, eval[bool](b, `document.activeElement === window.here`), "the focus is where it was")
	assert.True(t, eval[bool](b, `document.querySelectorAll("details[open]").length === 1`), "what is unfolded stays so")

	b.do(chromedp.Click("#pause"))
	assert.Equal(t, "true", eval[string](b, `document.getElementById("pause").getAttribute("aria-pressed")`))
	p.set(t, "settings-108", "1")
	b.do(chromedp.Click("#pause"))
	b.until(`document.querySelector("tbody").textContent.includes("settings-108")`)
}

func TestAnObjectIsReachedByKeyboardAlone(t *testing.T) {
	p, b := run(t), open(t)
	b.do(chromedp.Navigate(p.url), chromedp.WaitVisible("#main"))
	tabTo := func(wanted string) {
		t.Helper()
		for range 400 {
			b.do(chromedp.KeyEvent(kb.Tab))
			at := eval[string](b, `(document.activeElement.textContent || document.activeElement.name || "").trim()`)
			if at == wanted || eval[string](b, `document.activeElement.name || ""`) == wanted {
				assert.NotEqual(t, "none", eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`), "the focus is to be seen")
				return
			}
		}
		t.Fatalf("%s cannot be reached", wanted)
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	assert.Equal(t, "Skip to content", eval[string](b, `document.activeElement.textContent`))
	tabTo("Objects")
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//h1[text()="Objects"]`))
	tabTo("ConfigMaps")
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#ask"))
	tabTo("name")
	b.do(chromedp.KeyEvent("042" + kb.Enter))
	b.do(chromedp.WaitVisible(`//h2[contains(., "ConfigMaps")]`), chromedp.WaitNotPresent(`//li/a[text()="shop/settings-041"]`))
	assert.Equal(t, 1, eval[int](b, `document.querySelectorAll(".objects li").length`))
	tabTo("shop/settings-042")
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".fields"))
	assert.Contains(t, eval[string](b, `document.querySelector(".fields").textContent`), "settings-042")
}

func TestAPageIsReadableInTheDarkAndOnAPhone(t *testing.T) {
	p, b := run(t), open(t)
	background := `getComputedStyle(document.body).backgroundColor`
	b.do(chromedp.Navigate(p.url), chromedp.WaitVisible("#main"))
	light := eval[string](b, background)
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
	assert.NotEqual(t, light, eval[string](b, background))
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2), chromedp.EmulateMobile))
	for _, name := range []string{"", "queries", "streams", "objects", "object?query=Deployments&namespace=shop&name=cart", "snapshots", "derived", "requests"} {
		b.do(chromedp.Navigate(p.url+name), chromedp.WaitVisible("#main"))
		assert.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth - innerWidth`), 0, "%q scrolls sideways", name)
	}
}

func TestAPageWorksWithoutJavaScript(t *testing.T) {
	p, b := run(t), open(t)
	command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.do(chromedp.Navigate(p.url + "queries"))
	html := get(b, chromedp.OuterHTML("html"))
	assert.True(t, strings.Contains(html, "browser.snapshot"))
	assert.Contains(t, html, `http-equiv="refresh"`)
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestEachDependencyHasALicenceThatIsAllowed(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	must(t, err)
	const mozilla = "This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.\n" +
		"If a copy of the MPL was not distributed with this file, You can obtain one at http://mozilla.org/MPL/2.0/.\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"allowed":        {map[string]string{"LICENSE": string(apache)}, nil},
		"in small":       {map[string]string{"licence.md": string(apache)}, nil},
		"none":           {nil, []string{"example.com/dep v1.0.0 has no licence file"}},
		"only its name":  {map[string]string{"license.go": "package dep\n"}, []string{"example.com/dep v1.0.0 has no licence file"}},
		"not allowed":    {map[string]string{"LICENSE": mozilla}, []string{"example.com/dep v1.0.0: LICENSE is MPL-2.0; allowed are 0BSD, Apache-2.0, BSD-2-Clause, BSD-3-Clause, ISC, MIT"}},
		"one of several": {map[string]string{"LICENSE": string(apache), "COPYING": mozilla}, []string{"example.com/dep v1.0.0: COPYING is MPL-2.0; allowed are 0BSD, Apache-2.0, BSD-2-Clause, BSD-3-Clause, ISC, MIT"}},
		"no licence":     {map[string]string{"LICENSE": "Ask me.\n"}, []string{"example.com/dep v1.0.0: LICENSE is no licence that is known; allowed are 0BSD, Apache-2.0, BSD-2-Clause, BSD-3-Clause, ISC, MIT"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			served := map[string]string{"dep.go": "package dep\n"}
			for name, text := range c.files {
				served[name] = text
			}
			serve(t, "example.com/dep", "v1.0.0", served)
			r.require("extra", "example.com/dep", "v1.0.0")
			var out bytes.Buffer
			got, err := checkLicences(t.Context(), &out, r.tree())
			must(t, err)
			equal(t, got, c.want...)
			if out.String() != "licences of 1 dependencies\n" {
				t.Error(out.String())
			}
		})
	}
}

// What tests, tools and internal test helpers import does not reach users.
func TestDependenciesOfTestsAndToolsNeedNoLicence(t *testing.T) {
	r := newRepository(t)
	serve(t, "example.com/dep", "v1.0.0", map[string]string{"dep.go": "package dep\n"})
	r.require("extra", "example.com/dep", "v1.0.0")
	must(t, os.Rename(filepath.Join(r.dir, "extra/uses.go"), filepath.Join(r.dir, "extra/uses_test.go")))
	r.require("tools", "example.com/dep", "v1.0.0")
	r.require(".", "example.com/dep", "v1.0.0")
	must(t, os.Rename(filepath.Join(r.dir, "uses.go"), filepath.Join(r.dir, "internal/x/uses.go")))
	r.write("internal/x/uses.go", "package x\n\nimport _ \"example.com/dep\"\n")
	got, err := checkLicences(t.Context(), &bytes.Buffer{}, r.tree())
	must(t, err)
	equal(t, got)

	must(t, os.Remove(filepath.Join(r.dir, "LICENSE")))
	got, err = checkLicences(t.Context(), &bytes.Buffer{}, r.tree())
	must(t, err)
	equal(t, got, "there is no LICENSE in the root: the modules need one")
}

func TestTheLicenceOfAFolderAboveAPackageCounts(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../../LICENSE")
	must(t, err)
	for name, text := range map[string]string{"LICENSE": string(text), "used/COPYING": "Ask me.\n", "unused/COPYING": "Ask me.\n"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "used/pkg"), 0o755))
	d := dependency{name: "example.com/dep v1.0.0", dir: dir, dirs: []string{filepath.Join(dir, "used/pkg"), dir}}
	got, err := d.problems()
	must(t, err)
	equal(t, got, "example.com/dep v1.0.0: used/COPYING is no licence that is known; allowed are 0BSD, Apache-2.0, BSD-2-Clause, BSD-3-Clause, ISC, MIT")
}

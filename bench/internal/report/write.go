package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Title is the name of a consumer, an operator or a gateway for people. A minor one has a separate
// table.
type Title struct {
	Consumer, Text string
	Minor          bool
	// Lines is how many lines of code an operator has.
	Lines int
	// Fields is how many fields of a pod a consumer holds; 0 if that is of no interest.
	Fields int
}

// Titles are those of all that is measured, in the order of columns.
type Titles struct{ Consumers, Operators, Gateways, Builds, Derived []Title }

// rawName is the file of the raw results, notesName that of a person's notes about them. Both are
// in the folder of RESULTS.md.
const (
	rawName   = "results.json"
	notesName = "notes.md"
)

// ReadFrom reads the raw results in a folder.
func ReadFrom(dir string) (*Results, error) { return Read(filepath.Join(dir, rawName)) }

// Check says what is wrong with the results on any machine, however slow: values of zero, and
// stale objects.
func Check(r *Results) error {
	var wrong []error
	for _, s := range r.Samples {
		if (s.Value == 0) != (s.Metric == ChurnStale) && s.Metric != ChurnLag || s.Value < 0 {
			wrong = append(wrong, fmt.Errorf("%s of %s at %d pods is %v", s.Metric, s.Consumer, s.Pods, s.Value))
		}
	}
	if len(r.Samples) == 0 {
		wrong = append(wrong, errors.New("nothing was measured"))
	}
	return errors.Join(wrong...)
}

// WriteAll sorts the sizes, and writes the raw results, RESULTS.md, and its plots (in the folder
// plots) to a folder. If that has a file notes.md, RESULTS.md includes it.
func WriteAll(r *Results, titles Titles, dir string) error {
	// they may be measured in another order
	slices.SortFunc(r.Sizes, func(a, b Size) int { return a.Pods - b.Pods })
	if err := r.Write(filepath.Join(dir, rawName)); err != nil {
		return err
	}
	folder := filepath.Join(dir, "plots")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("write the plots: %w", err)
	}
	plots := Plots(r, titles.Consumers)
	for _, p := range plots {
		if err := os.WriteFile(filepath.Join(folder, p.File), []byte(p.SVG()), 0o644); err != nil {
			return fmt.Errorf("write the plots: %w", err)
		}
	}
	notes, err := os.ReadFile(filepath.Join(dir, notesName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "RESULTS.md"), []byte(Markdown(r, titles, plots, string(notes))), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

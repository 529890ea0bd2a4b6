package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Title is what people call a consumer, or an operator. A minor one has a table of its own.
type Title struct {
	Consumer, Text string
	Minor          bool
	// Lines is how many lines of code an operator has.
	Lines int
}

// rawName is the file of the raw results, and notesName that of what somebody wrote about them, in the
// folder that also has RESULTS.md.
const (
	rawName   = "results.json"
	notesName = "notes.md"
)

// ReadFrom reads the raw results in a folder.
func ReadFrom(dir string) (*Results, error) { return Read(filepath.Join(dir, rawName)) }

// Check says what is wrong with results on any machine, however slow: measurements of nothing, and
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

// WriteAll puts the sizes in order, and writes the raw results, RESULTS.md, and its plots in the folder plots, to a folder. If that
// has a file notes.md, RESULTS.md includes it.
func WriteAll(r *Results, titles, operators []Title, dir string) error {
	slices.SortFunc(r.Sizes, func(a, b Size) int { return a.Pods - b.Pods }) // they may be measured in another
	if err := r.Write(filepath.Join(dir, rawName)); err != nil {
		return err
	}
	folder := filepath.Join(dir, "plots")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("write the plots: %w", err)
	}
	plots := Plots(r, titles)
	for _, p := range plots {
		if err := os.WriteFile(filepath.Join(folder, p.File), []byte(p.SVG()), 0o644); err != nil {
			return fmt.Errorf("write the plots: %w", err)
		}
	}
	notes, err := os.ReadFile(filepath.Join(dir, notesName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "RESULTS.md"), []byte(Markdown(r, titles, operators, plots, string(notes))), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

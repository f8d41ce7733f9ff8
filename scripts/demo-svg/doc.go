// Command demo-svg records a command in a real terminal (tmux) and writes what
// a person would have seen as one animated SVG, without scripts or fonts of its
// own: go run ./scripts/demo-svg -o docs/demo.svg -- COMMAND…
package main

// Package review knows which part of a file's text is the agent's and waits for
// a person's judgement. It is pure: it holds texts and computes, and touches
// neither files nor documents. Offsets are bytes.
//
// A file has one text and one base. The base is the text as it would be without
// what the agent did and nobody has kept yet. Where they differ are hunks, of
// whole lines. What a person types outside every hunk belongs to both sides, so
// it never shows as the agent's; what is typed inside of one changes that hunk.
//
// The base is not stored. A [File] holds the text and, for each hunk, the piece
// of the base that it stands for, so that base and text can only differ inside
// of hunks, and an edit costs no more than the lines around it.
package review

// A browser window for the tests: a JSON object a line in on stdin, {id, result}
// or {id, error} a line out on stdout. Usage: page.mjs CHROMIUM PROFILE-FOLDER
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const [, , executablePath, profile] = process.argv;
const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1280, height: 800 },
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
const page = context.pages()[0] ?? (await context.newPage());
page.setDefaultTimeout(60_000);

const ops = {
  goto: ({ url }) => page.goto(url, { waitUntil: 'domcontentloaded' }).then(() => null),
  wait: ({ selector }) => page.waitForSelector(selector, { state: 'visible' }).then(() => null),
  click: ({ selector }) => page.click(selector).then(() => null),
  press: ({ key }) => page.keyboard.press(key).then(() => null),
  type: ({ text, delay }) => page.keyboard.type(text, { delay }).then(() => null),
  text: ({ selector }) => page.locator(selector).allInnerTexts(),
  screenshot: ({ path }) => page.screenshot({ path }).then(() => null),
};

function reply(body) {
  process.stdout.write(JSON.stringify(body) + '\n');
}

const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  const request = JSON.parse(line);
  Promise.resolve()
    .then(() => ops[request.op](request))
    .then(
      (result) => reply({ id: request.id, result }),
      (err) => reply({ id: request.id, error: String(err) }),
    );
});
input.on('close', () => context.close().then(() => process.exit(0)));
reply({ id: 0, result: 'ready' });

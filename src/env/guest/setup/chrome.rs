//! Steps that open and close pages in Chrome.

use tokio::time::sleep;

use super::{Stage, StepError};
use crate::env::guest::address::is_same_page;
use crate::env::guest::cdp::{Browser, CdpError};

impl Stage<'_> {
    /// Opens pages; the tab that Chrome began with goes once the first is open.
    pub(super) async fn open_tabs(&self, urls: &[String]) -> Result<(), StepError> {
        let mut browser = self.browser().await?;
        for (i, url) in urls.iter().enumerate() {
            let opened = browser.open(url, self.options.chrome.load).await?;
            if i > 0 {
                continue;
            }
            if let Some(first) = browser.first_but(&opened).await? {
                browser.close(&first).await?;
            }
        }
        Ok(())
    }

    /// Closes the first page of each address; none is no error.
    pub(super) async fn close_tabs(&self, urls: &[String]) -> Result<(), StepError> {
        // Chrome has just been launched, and is still opening the pages.
        sleep(self.options.chrome.between).await;
        let mut browser = self.browser().await?;
        let mut pages = browser.pages().await?;
        for url in urls {
            if let Some(place) = pages.iter().position(|page| is_same_page(&page.url, url)) {
                browser.close(&pages.remove(place)).await?;
            }
        }
        Ok(())
    }

    /// Chrome, as soon as it answers.
    async fn browser(&self) -> Result<Browser, CdpError> {
        let patience = self.options.chrome;
        let mut tries = 1;
        loop {
            match Browser::connect(self.machine).await {
                Err(error) if tries < patience.tries => {
                    tracing::debug!(%error, tries, "Chrome is not there yet");
                }
                result => return result,
            }
            tries += 1;
            sleep(patience.between).await;
        }
    }
}
